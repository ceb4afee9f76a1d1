"""Models that recipes and targets are parsed into, and rules for names."""
