"""A run of a recipe: stages run on what their keys say, and the build folder is filled."""
