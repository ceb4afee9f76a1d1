"""Kernel folders, one per instruction set. See stages.backends.kernels."""
