"""Kernels for RISC-V cores with vectors (V 1.0, Zve32x), RV64 and RV32. They are correct for every VLEN from 128."""

from stages.backends.kernels.folder import KernelFolder
from stages.backends.riscv.kernels.rvv.elementwise import Add, Mul

FOLDER = KernelFolder(
    __file__,
    kernels=(Add, Mul),
    needs=("riscv", "vlen"),
    needed="needs RISC-V vectors, and `vlen` in the core",
    condition="defined(__riscv_xlen) && __riscv_xlen == {word_bits}",
    include=("../generic",),
)
