"""Kernel folders, one per instruction set (see stages.backends.kernels)."""
