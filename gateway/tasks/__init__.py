"""Owns narrow jobs: recognising a recurring prompt shape, naming it, switching it on and off."""
