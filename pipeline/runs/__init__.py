"""A run of a recipe: stages run on guarded inputs, and the build folder is filled."""
