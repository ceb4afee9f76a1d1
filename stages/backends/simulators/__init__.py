"""Shared by all simulators: starting a program, its limits, cycle counters, source lines of addresses."""
