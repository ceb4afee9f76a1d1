"""Kernels for RISC-V cores with vectors (V 1.0, Zve32x), RV64 and RV32. They are correct for every VLEN from 128."""

from pathlib import PurePath

from stages.backends.kernels.folder import KernelFolder
from stages.backends.riscv.kernels.rvv.elementwise import Add, Mul
from stages.backends.riscv.kernels.rvv.gemm import Gemm
from stages.backends.riscv.kernels.rvv.gemm_steps import Variant


def _generate(name: str) -> str | None:
    """Return the text of a generated file."""
    path = PurePath(name)
    try:
        variant = Variant.of_name(path.stem)
    except ValueError:
        return None
    return variant.text() if path.suffix == ".S" else variant.header() if path.suffix == ".h" else None


FOLDER = KernelFolder(
    __file__,
    kernels=(Add, Gemm, Mul),
    needs=("riscv", "vlen"),
    needed="needs RISC-V vectors, and `vlen` in the core",
    condition="defined(__riscv_xlen) && __riscv_xlen == {word_bits}",
    generate=_generate,
)
