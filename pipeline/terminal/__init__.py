"""What is shown of runs while they run and at their end: progress, tables, the outcomes of a matrix."""
