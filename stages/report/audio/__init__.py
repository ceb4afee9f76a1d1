"""Report of recordings over time: scores, decisions against labels, the core's load."""
