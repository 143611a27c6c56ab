"""The admin API's routes, thin: read a query or call a service, commit, answer."""
