"""Queries and writes of runs. Commits nothing, decides nothing."""
