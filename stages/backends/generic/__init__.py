"""Portable C kernels for every family."""
