"""Cycles of a firmware's instructions: its disassembly, sorted by a timing model, as a table for the simulators."""
