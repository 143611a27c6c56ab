"""Gateway keys: made, shown once, kept as hashes, revoked."""
