"""Targets: how cores and boards are declared, their memories, and their run-time code."""
