"""Owns evidence: intervals, evaluations on the test split, and the gate that a student has to pass."""
