"""Scoring completions: the rubric, the seam and the judge that asks an upstream. Trains nothing."""
