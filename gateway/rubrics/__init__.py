"""Owns what a good answer is: versioned rubrics of weighted criteria, vetoes and checks. Judges nothing."""
