"""Cores, boards and accelerators: a folder for each architecture family, and shared code."""
