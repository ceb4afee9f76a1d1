"""Estimated cycles: a firmware's disassembly, a timing model, and the table that simulators read."""
