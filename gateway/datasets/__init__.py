"""Owns training data: which calls become examples, how they split, frozen versions. Trains nothing."""
