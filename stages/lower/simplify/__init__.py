"""Simplify the integer graph: remove work without changing an output byte."""
