"""What recipes and targets are read into: strict models, and rules over layers."""
