"""Arithmetic of the reference kernels, shared by operators and stages."""
