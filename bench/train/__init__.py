"""Training measured side by side with TRL."""
