"""The steps of matrix products with RVV 1.0 (`stages.backends.tiles.matrix_product`).

Lanes are columns. A group of `lmul` registers holds an accumulator of 32 bits. Two ways to multiply:

    wide  weights become 16 bits (vsext), one element of each row at a time: vwmacc.vx
    dot   four elements of each row at a time: vqdot.vx of Zvqdotq (now Zvdot4a8i)

Encoding of vqdot.vx: riscv-opcodes, unratified/rv_zvqdotq: funct6 101100, OPMVX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stages.backends.riscv.convention import RISCV
from stages.backends.tiles.matrix_product import ARGUMENTS, MatrixSteps, matrix_product
from stages.backends.tiles.product_sizes import parts_of
from stages.backends.tiles.program import Program, Register

_VQDOT_VX = ".insn r 0x57, 6, 0x59, {0}, {1}, {2}"
CONVENTION = replace(RISCV, preamble=(*RISCV.preamble, "    .option arch, +zve32x"))


@dataclass(frozen=True)
class Variant:
    """Variant to generate. Its name contains all fields.

    height    rows that share a load of weights
    lmul      registers of an accumulator
    is_dot    vqdot instead of vwmacc
    rounding  of `rounding_of`
    shifted   the weights have a zero point
    clamped   outputs have bounds narrower than int8
    unsigned  outputs are uint8
    """

    height: int
    lmul: int
    is_dot: bool
    rounding: str
    shifted: bool = False
    clamped: bool = False
    unsigned: bool = False

    @property
    def name(self) -> str:
        """Name of the C function."""
        flags = "z" * self.shifted + "c" * self.clamped + "u" * self.unsigned
        kind = "dot" if self.is_dot else "wide"
        return f"rvv_gemm_{kind}_{self.height}xm{self.lmul}_{self.rounding}" + (f"_{flags}" if flags else "")

    @property
    def step(self) -> int:
        """Elements of the depth per multiply-accumulate."""
        return 4 if self.is_dot else 1

    @classmethod
    def of_name(cls, name: str) -> Variant:
        """Return the variant of a name. Raise ValueError if it is none."""
        try:
            _, _, kind, tile, rounding, *flags = name.split("_")
            height, lmul = map(int, tile.split("xm"))
        except ValueError:
            raise ValueError(f"{name} is not a matrix product of RVV") from None
        letters = "".join(flags)
        variant = cls(height, lmul, kind == "dot", rounding, "z" in letters, "c" in letters, "u" in letters)
        if variant.name != name:
            raise ValueError(f"{name} is not a matrix product of RVV")
        return variant

    def text(self) -> str:
        """Return the assembly, for RV32 and RV64."""
        program = Program(self.name, ARGUMENTS, CONVENTION, _DRAWING.format(v=self))
        matrix_product(program, _Steps(program, self), self.height)
        return program.text()


_DRAWING = """y = requantize(bias + x * weights): {v.height} rows at a time, accumulators of {v.lmul} registers.
 *
 * Generated from stages/backends/tiles/matrix_product.py. Arguments are described there.
"""


class _Steps(MatrixSteps):
    def __init__(self, program: Program, variant: Variant) -> None:
        super().__init__(program, variant.step)
        self.variant = variant
        v, p = variant, program
        self.sums = p.registers("v", "sum", v.height, v.lmul)
        self.wide = p.register("v", "weights16", max(1, v.lmul // 2))
        self.bytes = p.register("v", "weights8", max(1, v.lmul // 4))
        self.words = p.register("v", "weights32", v.lmul)
        self.constants = p.register("v", "constants", v.lmul)
        self.second = p.register("v", "constants2", v.lmul)
        self.value = p.registers("x", "value", 2 if v.height < 6 else 1)
        self.step_bytes = p.register("x", "step_bytes")
        self.zero_point = p.register("x", "weight_zero")
        self.turn = 0

    def _vtype(self, bits: int) -> str:
        eighths = self.variant.lmul * 8 * bits // 32
        return f"e{bits}, " + (f"m{eighths // 8}" if eighths >= 8 else f"mf{8 // eighths}") + ", ta, ma"

    @property
    def _product_bits(self) -> int:
        return 32 if self.variant.is_dot else 16

    def prepare(self) -> None:
        self.program("csrwi", "vxrm", 0, comment="round to nearest, halves up")
        if self.variant.shifted:
            self.field("weight_zero_point", self.zero_point)
            self.program("neg", self.zero_point, self.zero_point)

    def begin_block(self, columns: Register, width: Register) -> None:
        self.program("vsetvli", width, columns, self._vtype(self._product_bits))
        if self.variant.is_dot:
            self.program("slli", self.step_bytes, width, 2)

    def accumulators(self, height: int) -> Sequence[Register]:
        p = self.program
        p("vsetvli", "zero", "zero", self._vtype(self._product_bits))
        p("vle32.v", self.sums[0], p.at("channels"))
        for other in self.sums[1:]:
            p(f"vmv{self.variant.lmul}r.v", other, self.sums[0])
        return self.sums

    def multiply(self, sums: Sequence[Register], rows: Sequence[Register], weights: Register, element: int) -> None:
        p = self.program
        if self.variant.is_dot:
            p("vle32.v", self.words, p.at(weights))
            p("add", weights, weights, self.step_bytes)
        else:
            p("vle8.v", self.bytes, p.at(weights))
            p("add", weights, weights, p["width"])
            p("vsext.vf2", self.wide, self.bytes)
            if self.variant.shifted:
                p("vadd.vx", self.wide, self.wide, self.zero_point)
        for total, row in zip(sums, rows, strict=True):
            value = self.value[self.turn % len(self.value)]
            self.turn += 1
            if self.variant.is_dot:
                p("lw", value, p.at(row, element))
                p.encoded(_VQDOT_VX, total, value, self.words, mnemonic="vqdot.vx")
            else:
                p("lb", value, p.at(row, element))
                p("vwmacc.vx", total, value, self.wide)

    def end_steps(self, weights: Register, elements: int) -> None:
        """Do nothing: `multiply` has advanced `weights`."""

    def finish(self, sums: Sequence[Register], out: Register, y_row: Register, scratch: Register) -> None:
        p, v, width, constants = self.program, self.variant, self.program["width"], self.constants
        step, value = self.program.register("x", "part_bytes"), self.value[0]
        p("slli", step, width, 2)
        p("vsetvli", "zero", "zero", self._vtype(32))
        p("add", scratch, p["channels"], step)
        if v.rounding == "any":  # left shifts and masks follow the right shifts
            p("slli", value, step, 1)
            p("add", value, scratch, value)
            p("vle32.v", constants, p.at(value))
            for total in sums:
                p("vsll.vv", total, total, constants)
        p("vle32.v", constants, p.at(scratch))
        p("add", scratch, scratch, step)
        for total in sums:
            p("vmulh.vv" if v.rounding == "once" else "vsmul.vv", total, total, constants)
        if v.rounding == "any":
            p("add", value, value, step)
            p("vle32.v", self.second, p.at(value), comment="-1 where the right shift is not 0")
        for total in sums if v.rounding in ("signed", "any") else ():
            p("vsra.vi", constants, total, 31, comment="halves go away from zero")
            if v.rounding == "any":
                p("vand.vv", constants, constants, self.second)
            p("vadd.vv", total, total, constants)
        p("vle32.v", constants, p.at(scratch))
        for total in sums:
            p("vssra.vv", total, total, constants)
        self.field("zero_point", value)
        p("vsetvli", "zero", "zero", self._vtype(16))
        for total in sums:
            p("vnclip.wi", total, total, 0)
            p("vsadd.vx", total, total, value)
        p("vsetvli", "zero", "zero", self._vtype(8))
        for total in sums:
            p("vnclip.wi", total, total, 0)
        if v.clamped:
            self.field("low", value)
            self.field("high", scratch)
            for total in sums:
                p("vmax.vx", total, total, value)
                p("vmin.vx", total, total, scratch)
        if v.unsigned:
            p("li", value, -128)
            for total in sums:
                p("vxor.vx", total, total, value)
        for total in sums:
            p("vse8.v", total, p.at(out))
            p("add", out, out, y_row)

    def end_block(self, width: Register) -> None:
        p = self.program
        p("slli", p["scratch"], width, 2)
        for _ in range(parts_of(self.variant.rounding)):
            p("add", p["channels"], p["channels"], p["scratch"])
