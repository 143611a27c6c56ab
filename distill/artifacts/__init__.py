"""Owns model files on disk: the base model's folder and where it lies. Trains nothing, serves nothing."""

from distill.artifacts.base import ArtifactError, base_model_dir, ensure_base_model, is_complete

__all__ = ["ArtifactError", "base_model_dir", "ensure_base_model", "is_complete"]
