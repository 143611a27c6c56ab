"""The admin JSON API that the dashboard, the CLI and the demo speak: thin routers over the domains' services."""
