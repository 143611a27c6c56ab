"""Sampling completions from the policy: the seam and its implementations. Scores and trains nothing."""
