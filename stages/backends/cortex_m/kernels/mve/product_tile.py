"""Arithmetic of matrix products with MVE (product_program.py): chunks, requantization."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from stages.backends.cortex_m.convention import AFTER
from stages.backends.tiles.program import Address, Program, Register


@dataclass(frozen=True)
class Variant:
    """Variant to generate. Its name contains all fields."""

    width: int
    mode: str
    depth: str
    kind: str = ""

    @property
    def height(self) -> int:
        """Rows of a tile."""
        return 2 if self.width == 4 else 4

    @property
    def name(self) -> str:
        """Name of the C function."""
        return f"mve_gemm_{self.width}_{self.mode}_{self.depth}{self.kind}"


class Tile(ABC):
    """Arithmetic of a tile. Sums are in even registers, outputs in vectors."""

    def __init__(self, p: Program, variant: Variant) -> None:
        self.p, self.v = p, variant
        self.zero_point, self.low, self.high = (p.register("v", name) for name in ("zero_point", "low", "high"))
        self.y, self.count, self.weights_at, self.params_at = self.named("to_y", "count", "weights_at", "params_at")
        self.rows = p.registers("x", "row", variant.height)
        self.values, self.weights = p.registers("v", "value", 2), p.registers("v", "weight", 2)
        self.shifts = p.register("v", "shifts")

    @abstractmethod
    def write(self) -> None:
        """Write the program."""

    @abstractmethod
    def constant(self, number: int) -> Register:
        """Return bias, multiplier or rounder of the columns."""

    def named(self, *names: str) -> list[Register]:
        """Return new registers."""
        return [self.p.register("x", name) for name in names]

    def after(self, base: Register | str, offset: int) -> Address:
        """Return an operand that increments its base."""
        return self.p.at(base, offset, AFTER)

    def load_fields(self, fields: Register) -> None:
        """Load the vectors that all tiles use, and P0."""
        p, (field,) = self.p, self.named("field")
        if self.v.depth != "whole":
            p("ldr", field, p.at(fields, 4))
            p("vctp.8", field)
        for i, register in enumerate((self.zero_point, self.low, self.high)):
            p("ldr", field, p.at(fields, 16 + 4 * i))
            p("vdup.32", register, field)

    def multiply(self, height: int) -> list[list[Register]]:
        """Return the sums of a tile. The first chunk multiplies without adding."""
        p, v = self.p, self.v
        sums = [p.registers("even", f"sum{height}_{i}_", v.width) for i in range(height)]
        chunks, more = p.register("lr", f"chunks{height}"), partial(self.chunk, sums, "vmladava.s8")
        if v.depth != "short":
            self.chunk(sums, "vmladav.s8")
            if v.width * height == 8:
                with p.unless("cbz", self.count), p.loop("bne"):
                    more()
                    p("subs", self.count, self.count, "#1")
            elif v.width * height == 4:
                with p.unless("wls", chunks, self.count), p.loop("le", chunks):
                    more()
            else:
                p("lsrs", self.count, self.count, "#1", comment="two at a time")
                with p.unless("wls", chunks, self.count), p.loop("le", chunks):
                    more()
                    more()
                with p.unless("bcc"):
                    more()
        if v.depth != "whole":
            self.chunk(sums, "vmladav.s8" if v.depth == "short" else "vmladava.s8", is_rest=True)
        return sums

    def chunk(self, sums: Sequence[Sequence[Register]], multiply: str, *, is_rest: bool = False) -> None:
        """Multiply 16 elements of each row with each column; P0 selects those of the rest."""
        p = self.p
        together = 2 if is_rest or self.v.width == 4 else 1
        for first in range(0, len(sums), together):
            rows = range(first, min(first + together, len(sums)))
            if is_rest:
                p("vpst" + "t" * (len(rows) - 1))
            for i in rows:
                source = p.at(self.rows[i]) if is_rest else self.after(self.rows[i], 16)
                p("vldrbt.8" if is_rest else "vldrb.8", self.values[i % 2], source)
            # Loads alternate with multiplications: the core overlaps them.
            loads = iter([] if first else (self.weights * 2)[: self.v.width])
            self.load_weight(loads)
            for j in range(self.v.width):
                for i in rows:
                    p(multiply, sums[i][j], self.values[i % 2], self.weights[j % 2])
                    if i == j == 0 and len(rows) == 2:
                        self.load_weight(loads)
                self.load_weight(loads)

    def load_weight(self, loads: Iterator[Register]) -> None:
        """Load the next column's weights, if there is one."""
        for weight in islice(loads, 1):
            self.p("vldrb.8", weight, self.after(self.weights_at, 16))

    def join(self, vector: Register, lane: Sequence[Register]) -> None:
        """Move sums to a vector."""
        for i in range(2) if len(lane) == 4 else ():
            self.p("vmov", self.p.at(vector, i, f"{{base}}[{i + 2}], {{base}}[{{offset}}]"), lane[i], lane[i + 2])
        if len(lane) == 1:
            self.p("vdup.32", vector, lane[0])

    def lower(self, vector: Register, scratch: Register) -> None:
        """Subtract one from negative sums: mode lowered of rounding.py."""
        self.p("vshr.s32", scratch, vector, "#31")
        self.p("vadd.i32", vector, vector, scratch)

    def requantize(self, vectors: Sequence[Register], height: int) -> None:
        """Turn sums into outputs."""
        p, mode, is_lane = self.p, self.v.mode, height == 4

        def each(operation: str, operand: Register) -> None:
            for vector in vectors:
                p(operation, vector, vector, operand)

        each("vadd.i32", self.constant(0))
        if self.v.kind == "_offsets":
            offsets, offset = self.named(f"offsets{height}", f"offset{height}")
            p("ldr", offsets, p.word("offsets"))
            if is_lane:
                p("vldrw.32", self.values[1], p.at(offsets))
            for i, vector in enumerate(vectors):
                if not is_lane:
                    p("ldr", offset, p.at(offsets, 4 * i))
                p("vadd.i32", vector, vector, self.values[1] if is_lane else offset)
        multiplier, rounder = self.constant(1), self.constant(2)
        if mode == "shifted":
            self.shift(vectors, multiplier, rounder)
        else:
            each("vqdmulh.s32" if mode == "single" else "vqrdmulh.s32", multiplier)
            for vector in vectors if mode == "lowered" else ():
                self.lower(vector, self.weights[1])
            each("vqrdmulh.s32", rounder)
        each("vadd.i32", self.zero_point)
        each("vmax.s32", self.low)
        each("vmin.s32", self.high)

    def shift(self, vectors: Sequence[Register], multiplier: Register, rounder: Register) -> None:
        """Shift left, multiply, shift right: mode shifted of rounding.py."""
        p, shifts = self.p, self.shifts
        p("vmov.i32", shifts, "#0")
        p("vmax.s32", shifts, shifts, rounder)
        for vector in vectors:
            p("vshl.s32", vector, vector, shifts)
            p("vqrdmulh.s32", vector, vector, multiplier)
        p("vmov.i32", shifts, "#0")
        p("vmin.s32", rounder, rounder, shifts)
        for vector in vectors:
            p("vand", shifts, vector, rounder)
            p("vshr.s32", shifts, shifts, "#31")
            p("vadd.i32", vector, vector, shifts)
            p("vrshl.s32", vector, vector, rounder)

    def advance(self, name: str, amount: str) -> None:
        """Add to a word of the frame."""
        (value,) = self.named(f"{name}_{self.p.lines}")
        self.p("ldr", value, self.p.word(name))
        self.p("adds", value, value, amount)
        self.p("str", value, self.p.word(name))
