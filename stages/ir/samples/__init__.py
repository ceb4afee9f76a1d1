"""What a network is run on: inputs and labels in files that a recipe names."""
