"""Matrices: one variant of a recipe for each combination of axis values."""
