"""Kernels: descriptors, the registry, and code that several kernel folders share.

`kernel` is the descriptor of a kernel. Each instruction set has a folder with descriptors and C.
"""
