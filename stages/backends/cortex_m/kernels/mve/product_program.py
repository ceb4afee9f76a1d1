"""Programs of MVE: rows of int8 times packed weights, requantized to 8 bits.

    void mve_gemm_<width>_<mode>_<depth>[_offsets|_plain](
        const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t blocks,
        const int32_t *fields, const int32_t *offsets);

    x        rows, fields.x_row bytes apart
    weights  [blocks][chunks][width][16 elements of the depth], padded with zeros
    params   [blocks][3][width]: bias, multiplier, rounder
    y        rows, fields.y_row bytes apart; blocks * width channels of each are written
    fields   more: number of full chunks after the first; rest: elements of the last chunk (depth whole: none);
             x_row, y_row; zero_point, low, high
    offsets  [rows]: added to all sums of a row (the term of the weights' zero point); only _offsets reads them

    width    4: two rows at a time, 14 instructions and 2 of the loop for 128 multiply-accumulates
             1: four rows at a time, 9 instructions and 1 of the loop for 64
    depth    whole  a multiple of 16
             rest   above 16, not a multiple
             short  below 16
    mode     how sums become outputs, see rounding.py: exact, lowered, single, shifted
    plain    for up to 16 elements and int8 outputs without bounds: narrowing saturates. 17 or 18 instructions for
             four outputs

Remaining rows go one by one. The first chunk multiplies without adding, so sums need not be cleared.
"""

from itertools import pairwise, product

from stages.backends.cortex_m.convention import THUMB
from stages.backends.cortex_m.kernels.mve.product_tile import Tile, Variant
from stages.backends.tiles.program import Program, Register

_MODES, _DEPTHS = ("exact", "lowered", "single", "shifted"), ("whole", "rest", "short")


def generate(file: str) -> str | None:
    """Return the text of a generated file, None for another name."""
    name, _, suffix = file.partition(".")
    for fields in product((4, 1), _MODES, _DEPTHS, ("", "_offsets", "_plain")):
        if (variant := Variant(*fields)).name == name:
            return _text(variant) if suffix == "S" else _HEADER.format(name=name)
    return None


def _text(variant: Variant) -> str:
    p = Program(variant.name, ("input", "weights", "params", "output"), THUMB, _DRAWING.format(v=variant))
    tile = _Plain if variant.kind == "_plain" else _Blocks if variant.width == 4 else _Columns
    tile(p, variant).write()
    return p.text()


_HEADER = """#pragma once

#include <stdint.h>

void {name}(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t blocks,
            const int32_t *fields, const int32_t *offsets);
"""
_DRAWING = """y = requantize(bias + offsets + x * weights): see product_program.py for the arguments.
 *
 *           weight0 ...                   16 elements of the depth
 *   value   sum_<height>_<row>_<column>   {v.width} columns
 """


class _Blocks(Tile):
    """Blocks of four columns: for each pair of rows, all blocks.

    Sums take all even registers.
    """

    def write(self) -> None:
        p, x, y = self.p, self.p["input"], self.p["output"]
        for name in ("weights", "params", "rows", "offsets", "x_row", "y_bytes", "y_row", "y_end"):
            p.word(name)
        rows, y_bytes, fields, x_row, y_row = self.named("all_rows", "y_bytes", "fields", "x_row", "y_row")
        p("strd", p["weights"], p["params"], p.word("weights"))
        p("ldrd", rows, y_bytes, "[sp, #ARGUMENTS]", comment="blocks")
        p("ldrd", fields, x_row, "[sp, #ARGUMENTS + 8]", comment="and offsets")
        p("strd", rows, x_row, p.word("rows"))
        p("ldrd", x_row, y_row, p.at(fields, 8))
        p("lsl", y_bytes, y_bytes, "#2")
        p("strd", x_row, y_bytes, p.word("x_row"))
        p("add", y_bytes, y_bytes, y)
        p("strd", y_row, y_bytes, p.word("y_row"))
        p("mov", self.y, y)
        for row in self.rows:
            p("str", x, p.word(row.name))
            p("add", x, x, x_row)
        p("ldr", x, p.at(fields))
        p("str", x, p.word("count"))
        self.load_fields(fields)
        self.advance("rows", "#-2")
        with p.unless("blt"):
            p.note("two rows at a time")
            with p.loop("bge"):
                self.blocks(2)
                self.next_rows()
        self.advance("rows", "#1")
        with p.unless("blt"):
            self.blocks(1)

    def blocks(self, height: int) -> None:
        """Compute all blocks of `height` rows."""
        p, vectors = self.p, self.values[:height]
        y_row, y_end = self.named(f"y_row{height}", f"y_end{height}")
        p("ldrd", self.weights_at, self.params_at, p.word("weights"))
        with p.loop("bne"):
            p.load_words(self.count, *self.rows)
            for vector, lane in zip(vectors, self.multiply(height), strict=True):
                self.join(vector, lane)
            self.requantize(vectors, height)
            p("ldrd", y_row, y_end, p.word("y_row"))
            if height > 1:
                p("add", y_row, y_row, self.y)
                p("vstrb.32", vectors[1], p.at(y_row))
            p("vstrb.32", vectors[0], self.after(self.y, 4))
            p("cmp", self.y, y_end)

    def constant(self, number: int) -> Register:
        self.p("vldrw.32", self.weights[number % 2], self.after(self.params_at, 16))
        return self.weights[number % 2]

    def next_rows(self) -> None:
        """Advance by two rows."""
        p = self.p
        x, x_row, y_bytes, y_row, y_end = self.named("next_x", "next_x_row", "next_bytes", "next_y_row", "next_y_end")
        p("ldrd", x_row, y_bytes, p.word("x_row"))
        p("ldrd", y_row, y_end, p.word("y_row"))
        p("ldr", x, p.word("row1"))
        for row in self.rows:
            p("add", x, x, x_row)
            p("str", x, p.word(row.name))
        p("add", y_end, y_end, y_row, "lsl #1")
        p("str", y_end, p.word("y_end"))
        p("sub", self.y, y_end, y_bytes)
        if self.v.kind == "_offsets":
            self.advance("offsets", "#8")
        self.advance("rows", "#-2")


class _Columns(Tile):
    """Single columns: for each column, all rows. Lanes are rows."""

    def write(self) -> None:
        p, v = self.p, self.v
        for name in ("weights", "count", "multiplier", "rounder"):
            p.word(name)
        columns, fields, x_row, y_row, rows = self.named("columns", "fields", "x_row", "y_row", "rows")
        self.bias, self.places, zero = p.register("v", "bias"), p.register("v", "places"), p.register("even", "zero")
        p("ldrd", columns, fields, "[sp, #ARGUMENTS + 4]")
        p("ldr", self.count, p.at(fields))
        p("strd", p["weights"], self.count, p.word("weights"))
        for register in (columns, p["input"], p["output"], p["params"]):
            p("str", register, p.word(register.name))
        p("ldrd", x_row, y_row, p.at(fields, 8))
        p("mov", zero, "#0")
        p("vidup.u32", self.places, zero, "#1")
        p("vmul.i32", self.places, self.places, y_row)
        if v.depth == "short":
            p("str", x_row, p.word("to_next"))
        else:
            p("add", self.count, self.count, "#1")
            p("sub", self.count, x_row, self.count, "lsl #4")
            p("str", self.count, p.word("to_next"))
        self.load_fields(fields)
        with p.loop("bne"):
            self.begin_column(rows)
            before = 0
            for height in (4, 1):
                p("adds", rows, rows, f"#{before - height}")
                before = height
                with p.unless("blt"), p.loop("bge"):
                    self.tile(height, x_row, y_row)
                    p("subs", rows, rows, f"#{height}")
            p("str", self.weights_at, p.word("weights"))
            self.advance("output", "#1")
            self.advance("columns", "#-1")

    def begin_column(self, rows: Register) -> None:
        """Load the constants of a column, and the first row."""
        p, (multiplier, rounder) = self.p, self.named("column_multiplier", "column_rounder")
        p("ldr", self.params_at, p.word("params"))
        p("ldr", multiplier, self.after(self.params_at, 4))
        p("vdup.32", self.bias, multiplier)
        p("ldrd", multiplier, rounder, self.after(self.params_at, 8))
        p("strd", multiplier, rounder, p.word("multiplier"))
        p("str", self.params_at, p.word("params"))
        if self.v.kind == "_offsets":
            p("ldr", multiplier, "[sp, #ARGUMENTS + 12]")
            p("str", multiplier, p.word("offsets"))
        p("ldr", self.rows[0], p.word("input"))
        p("ldr", self.y, p.word("output"))
        p("ldr", rows, "[sp, #ARGUMENTS]")

    def tile(self, height: int, x_row: Register, y_row: Register) -> None:
        """Compute `height` rows of the column."""
        p, vector, (scratch,) = self.p, self.values[0], self.named(f"scratch{height}")
        for above, below in pairwise(self.rows[:height]):
            p("add", below, above, x_row)
        p("ldrd", self.weights_at, self.count, p.word("weights"))
        self.join(vector, [row[0] for row in self.multiply(height)])
        self.scale = p.registers("x", f"scale{height}_", 2)
        self.requantize([vector], height)
        if height == 4:
            p("vstrb.32", vector, p.at(self.places, 0, f"[{self.y}, {{base}}]"))
        else:
            p("vmov.32", scratch, p.at(vector, 0, "{base}[{offset}]"))
            p("strb", scratch, p.at(self.y))
        if self.v.kind == "_offsets":
            self.advance("offsets", f"#{4 * height}")
        p("add", self.y, self.y, y_row, f"lsl #{height // 2}")
        p("ldr", scratch, p.word("to_next"))
        p("add", self.rows[0], self.rows[height - 1], scratch)

    def constant(self, number: int) -> Register:
        if number == 0:
            return self.bias
        if number == 1:
            self.p("ldrd", *self.scale, self.p.word("multiplier"))
        elif self.v.mode == "shifted":
            self.p("vdup.32", self.weights[0], self.scale[1])
            return self.weights[0]
        return self.scale[number - 1]


class _Plain(Tile):
    """Rows of one chunk: for each block of four columns, all rows.

    Weights and constants stay in registers.
    """

    def write(self) -> None:
        p, v, x, y, lane = self.p, self.v, self.rows[0], self.y, self.p.registers("even", "sum", 4)
        rows, blocks, fields, x_row, y_row = self.named("rows", "blocks", "fields", "x_row", "y_row")
        weights, self.scale = p.registers("v", "block_weight", 4), p.registers("v", "constant", 3)
        vector, left = self.values[0], p.register("lr", "rows_left")
        p("ldrd", rows, blocks, "[sp, #ARGUMENTS]")
        p("ldr", fields, "[sp, #ARGUMENTS + 8]")
        if v.depth == "short":
            p("ldr", x, p.at(fields, 4))
            p("vctp.8", x)
        p("ldrd", x_row, y_row, p.at(fields, 8))
        p("ldr", fields, p.at(fields, 16), comment="zero_point")
        with p.loop("bne"):
            for vector_of, base in [(weight, "weights") for weight in weights] + [(c, "params") for c in self.scale]:
                p("vldrw.32", vector_of, self.after(base, 16))
            p("mov", x, p["input"])
            p("mov", y, p["output"])
            with p.unless("wls", left, rows), p.loop("le", left):
                if v.depth == "short":
                    p("vpst")
                p("vldrbt.8" if v.depth == "short" else "vldrb.8", vector, p.at(x))
                p("add", x, x, x_row)
                for total, weight in zip(lane, weights, strict=True):
                    p("vmladav.s8", total, vector, weight)
                self.join(vector, lane)
                p("vadd.i32", vector, vector, self.constant(0))
                p("vqrdmulh.s32", vector, vector, self.constant(1))
                if v.mode == "lowered":
                    self.lower(vector, self.constant(0))
                    p("vldrw.32", self.constant(0), p.at("params", -48))
                p("vqrdmulh.s32", vector, vector, self.constant(2))
                p("vadd.i32", vector, vector, fields)
                p("vqmovnb.s32", vector, vector)
                p("vqmovnb.s16", vector, vector)
                p("vstrb.32", vector, p.at(y))
                p("add", y, y, y_row)
            p("add", p["output"], p["output"], "#4")
            p("subs", blocks, blocks, "#1")

    def constant(self, number: int) -> Register:
        return self.scale[number]
