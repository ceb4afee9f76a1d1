"""Shared by all simulators: start of a program, limits, cycle counters, source lines."""
