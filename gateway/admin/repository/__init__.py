"""The admin API's read models: every query is scoped by project."""
