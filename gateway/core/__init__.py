"""What every layer stands on: settings, clock, ids, errors, database sessions, secrets, job queue."""
