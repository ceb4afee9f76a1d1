"""Estimated cycles: disassembly, timing model, and the table that simulators read."""
