"""Kernels for RISC-V cores with vectors (V 1.0, Zve32x), RV64 and RV32.

They are correct for every VLEN from 128.
"""

from pathlib import PurePath

from stages.backends.kernels.folder import KernelFolder
from stages.backends.riscv.kernels.rvv.bytes import Extremum, Table
from stages.backends.riscv.kernels.rvv.depthwise import Depthwise, FewInputs
from stages.backends.riscv.kernels.rvv.elementwise import Add, Mul
from stages.backends.riscv.kernels.rvv.gemm import Gemm
from stages.backends.riscv.kernels.rvv.gemm_program import Variant
from stages.backends.riscv.kernels.rvv.mean import Average, Mean
from stages.backends.riscv.kernels.rvv.movement import Concatenation, Move, Slide, Variable
from stages.backends.riscv.kernels.rvv.pooling import VectorPoolRows
from stages.backends.riscv.kernels.rvv.prelu import Prelu
from stages.backends.riscv.kernels.rvv.rows import Resize, Softmax
from stages.backends.tiles.product_kernel import header


def _generate(name: str) -> str | None:
    """Return the text of a generated file."""
    path = PurePath(name)
    try:
        variant = Variant.of_name(path.stem)
    except ValueError:
        return None
    return variant.text() if path.suffix == ".S" else header(path.stem) if path.suffix == ".h" else None


FOLDER = KernelFolder(
    __file__,
    kernels=(
        Add,
        Average,
        Concatenation,
        Depthwise,
        Extremum,
        FewInputs,
        Gemm,
        Mean,
        Move,
        Mul,
        Prelu,
        Resize,
        Slide,
        Softmax,
        Table,
        Variable,
        VectorPoolRows,
    ),
    needs=("riscv", "vlen"),
    uses=("zvdot4a8i 0.1",),
    needed="needs RISC-V vectors, and `vlen` in the core",
    condition="defined(__riscv_xlen) && __riscv_xlen == {word_bits}",
    generate=_generate,
)
