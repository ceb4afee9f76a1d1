"""Kernel folders, one for each instruction set; stages.backends.kernels describes them."""
