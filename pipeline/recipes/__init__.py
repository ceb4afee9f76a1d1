"""Recipes: lookup, extension, validation, targets, and the chain of stages."""
