"""Owns students: checkpoints released on evidence, their manifests, prices and deployments. Serves nothing."""
