"""Samples: inputs and labels from files that a recipe names."""
