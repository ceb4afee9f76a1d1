"""Kernels for RISC-V cores with base and multiply instructions only, RV64 and RV32."""

from stages.backends.kernels.folder import KernelFolder
from stages.backends.riscv.kernels.riscv.depthwise3x3 import Depthwise3x3
from stages.backends.riscv.kernels.riscv.gemm import Gemm
from stages.backends.riscv.kernels.riscv.movement import Concatenation, Move, Slide, Variable

FOLDER = KernelFolder(
    __file__,
    kernels=(Concatenation, Depthwise3x3, Gemm, Move, Slide, Variable),
    needs=("riscv",),
    needed="needs a RISC-V core",
    condition="defined(__riscv)",
    include=("../generic",),
)
