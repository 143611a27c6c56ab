"""Owns training jobs as rows: their configuration, lease, steps and story. Trains nothing."""
