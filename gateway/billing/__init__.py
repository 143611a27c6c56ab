"""Money: prices in force, charges in an append-only ledger."""
