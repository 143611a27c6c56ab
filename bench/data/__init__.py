"""Finding things among a million captured calls."""
