"""Kernels: `kernel` is the descriptor every kernel fills in; one folder per instruction set holds descriptors and C."""
