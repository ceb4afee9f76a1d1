"""Arithmetic of the reference kernels that operators and stages share."""
