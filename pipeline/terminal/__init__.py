"""Output of runs: progress, tables, the results of a matrix."""
