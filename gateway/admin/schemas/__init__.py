"""The shapes of the admin API: what its OpenAPI document, and so the dashboard's typed client, is made of."""
