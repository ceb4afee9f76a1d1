"""Recipes: found, named, extended and checked, with the targets and the chain of stages that they mean."""
