"""YAML documents: parsing, positions of values, command-line overrides, error messages."""
