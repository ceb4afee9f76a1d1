"""Matrix products with a dot product in RISC-V's general registers (stages.backends.tiles).

An instruction set declares these under `operations` (instructions/README.md):

    dot(d, a, b)         needed: d plus the products of four signed bytes of a and b, modulo 2^32
    high_multiply(a, b)  (a * b + 2^30) >> 31, for b >= 0
    min(a, b), max(a, b)

On RV64, registers hold 32-bit numbers with their sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from stages.backends.riscv.convention import RISCV
from stages.backends.riscv.instructions.declaration import InstructionSet
from stages.backends.riscv.instructions.kernel_headers import insn
from stages.backends.tiles.matrix_product import ARGUMENTS, MatrixSteps, matrix_product
from stages.backends.tiles.product_sizes import parts_of
from stages.backends.tiles.program import Program, Register

OPERATIONS = ("dot", "high_multiply", "min", "max")
STEP = 4  # elements of a dot product
_RV64 = "__riscv_xlen == 64"


@dataclass(frozen=True)
class DotVariant:
    """Variant to generate: a tile of `height` rows and `width` columns, and its rounding.

    unsigned  outputs are uint8
    """

    height: int
    width: int
    rounding: str
    unsigned: bool

    def name(self, prefix: str) -> str:
        """Return the name of the C function."""
        return f"{prefix}_gemm_{self.height}x{self.width}_{self.rounding}_{'u8' if self.unsigned else 's8'}"

    @classmethod
    def of_name(cls, name: str, prefix: str) -> DotVariant:
        """Return the variant of a name. Raise ValueError if it is none."""
        tile, rounding, output = name.removeprefix(f"{prefix}_gemm_").split("_")
        height, width = map(int, tile.split("x"))
        variant = cls(height, width, rounding, output == "u8")
        if variant.name(prefix) != name:
            raise ValueError(f"{name} is not a matrix product")
        return variant

    def text(self, prefix: str, declared: InstructionSet) -> str:
        """Return the assembly with the instructions of `declared`."""
        program = Program(self.name(prefix), ARGUMENTS, RISCV, _DRAWING.format(v=self, set=declared))
        matrix_product(program, _DotSteps(program, self, declared), self.height)
        return program.text()


_DRAWING = """y = requantize(bias + x * weights) with {set.name} {set.version}.
 *
 * {v.height} rows and {v.width} columns at a time:
 *
 *           weight0 weight1 ...      four weights each
 *   value   sum0_0  sum0_1  ...      four elements of a row
 *   value   sum1_0  ...
 *
 * Generated from stages/backends/tiles/matrix_product.py. Arguments are described there.
 """


class _DotSteps(MatrixSteps):
    def __init__(self, program: Program, variant: DotVariant, declared: InstructionSet) -> None:
        super().__init__(program, step=STEP)
        self.variant, self.declared = variant, declared
        v, p = variant, program
        self.sums = [p.register("x", f"sum{i}_{j}") for i in range(v.height) for j in range(v.width)]
        self.weights = p.registers("x", "weight", v.width)
        self.value = p.register("x", "value")

    def _has(self, operation: str) -> bool:
        return operation in self.declared.operations_on(32)

    def _operate(self, operation: str, result: Register, *sources: Register) -> None:
        """Add an operation of the instruction set: one instruction."""
        _, expressions = self.declared.operations_on(32)[operation]
        name = expressions[0].partition("(")[0]
        text = insn(self.declared.instructions[name], 0, "{0}", ["{1}", "{2}"])
        self.program.encoded(text, result, *sources, mnemonic=name)

    def prepare(self) -> None:
        """Do nothing: no register is loaded before the blocks."""

    def begin_block(self, columns: Register, width: Register) -> None:
        p, missing = self.program, self.value
        p("li", width, self.variant.width)
        p("sub", missing, columns, width)
        with p.unless("bgez", missing):
            p.note("the last block begins earlier and computes some columns again")
            p("add", p["output"], p["output"], missing)
            p("mv", columns, width)

    def accumulators(self, height: int) -> Sequence[Register]:
        p, width = self.program, self.variant.width
        for j in range(width):
            p("lw", self.sums[j], p.at("channels", 4 * j))
        for i in range(1, height):
            for j in range(width):
                p("mv", self.sums[i * width + j], self.sums[j])
        return self.sums

    def multiply(self, sums: Sequence[Register], rows: Sequence[Register], weights: Register, element: int) -> None:
        p, width = self.program, self.variant.width
        for j, weight in enumerate(self.weights):
            p("lw", weight, p.at(weights, element * width + 4 * j))
        for i, row in enumerate(rows):
            p("lw", self.value, p.at(row, element))
            for total, weight in zip(sums[i * width : (i + 1) * width], self.weights, strict=True):
                self._operate("dot", total, self.value, weight)

    def end_steps(self, weights: Register, elements: int) -> None:
        self.program("addi", weights, weights, elements * self.variant.width)

    def finish(self, sums: Sequence[Register], out: Register, y_row: Register, scratch: Register) -> None:
        p, v = self.program, self.variant
        names = ("multiplier", "shift_right", "half", "lower", "upper", "zero_point", "low_bound", "high_bound")
        multiplier, shift, half, lower, upper, zero_point, low, high = (p.register("x", name) for name in names)
        rows = p.registers("x", "to_row", v.height)
        p("mv", rows[0], out)
        for above, below in pairwise(rows):
            p("add", below, above, y_row)
        p("add", out, rows[-1], y_row)
        for name, register in (("zero_point", zero_point), ("low", low), ("high", high)):
            self.field(name, register)
        for j in range(v.width):
            p.note(f"column {j}")
            if v.rounding == "any":
                p("lw", scratch, p.at("channels", 4 * (3 * v.width + j)))
                for i in range(v.height):
                    p("SHIFT_LEFT", sums[i * v.width + j], sums[i * v.width + j], scratch)
                p("lw", scratch, p.at("channels", 4 * (4 * v.width + j)))
            p("lw", multiplier, p.at("channels", 4 * (v.width + j)))
            p("lw", shift, p.at("channels", 4 * (2 * v.width + j)))
            p("li", half, 1)
            p("sll", half, half, shift)
            p("srli", half, half, 1)
            for i in range(v.height):
                total = sums[i * v.width + j]
                self._multiply_high(total, multiplier, lower, upper)
                if v.rounding in ("signed", "any"):
                    p("srai", lower, total, 31, comment="halves go away from zero")
                    if v.rounding == "any":
                        p("and", lower, lower, scratch)
                    p("add", total, total, lower)
                p("add", total, total, half)
                p("sra", total, total, shift)
                p("add", total, total, zero_point)
                self._bound("max", "bge", total, low)
                self._bound("min", "ble", total, high)
                if v.unsigned:
                    p("xori", total, total, 128)
                p("sb", total, p.at(rows[i], j))

    def _multiply_high(self, total: Register, multiplier: Register, lower: Register, upper: Register) -> None:
        """The product without its low 31 bits, rounded; for "once" without 32 bits, truncated."""
        p = self.program
        if self.variant.rounding == "once":

            def wide() -> None:
                p("mul", total, total, multiplier)
                p("srai", total, total, 32)

            p.either(_RV64, wide, lambda: p("mulh", total, total, multiplier))
        elif self._has("high_multiply"):
            self._operate("high_multiply", total, total, multiplier)
        else:
            p("lui", lower, 0x40000, comment="2^30")

            def wide() -> None:
                p("mul", total, total, multiplier)
                p("add", total, total, lower)
                p("srai", total, total, 31)

            def narrow() -> None:
                p("mulh", upper, total, multiplier)
                p("mul", total, total, multiplier)
                p("add", lower, total, lower)
                p("sltu", total, lower, total, comment="carry")
                p("add", upper, upper, total)
                p("slli", upper, upper, 1)
                p("srli", lower, lower, 31)
                p("or", total, upper, lower)

            p.either(_RV64, wide, narrow)

    def _bound(self, operation: str, branch: str, total: Register, bound: Register) -> None:
        if self._has(operation):
            self._operate(operation, total, total, bound)
        else:
            with self.program.unless(branch, total, bound):
                self.program("mv", total, bound)

    def end_block(self, width: Register) -> None:
        p = self.program
        p("addi", p["channels"], p["channels"], 4 * parts_of(self.variant.rounding) * self.variant.width)
