"""A recipe's matrix: one sub-recipe for each combination of the values on its axes."""
