"""Recipes: lookup, extension, validation, targets, and the stage sequence."""
