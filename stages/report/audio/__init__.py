"""Report of recordings over time: scores, decisions against labels, and the load of the core."""
