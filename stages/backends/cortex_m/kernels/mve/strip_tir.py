"""TIR of gathering the windows of neighbouring output pixels into one strip."""

from collections.abc import Mapping
from typing import Any

from tvm.tirx.script.builder import ir as T

from stages.backends.cortex_m.kernels.mve.rows import row_bytes
from stages.backends.kernels.eight_bit import SUFFIX, weight_zero_point
from stages.backends.kernels.matrix import depth_of
from stages.backends.kernels.tir.block import Block, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.fixed_point import lowered, widen
from stages.backends.kernels.tir.window import gathered
from stages.ir.graph import LayerView


def gather_strip(view: LayerView, name: str, fields: Mapping[str, int], rows: int) -> Block:
    """Gather the windows of `rows` pixels of one output row from `first` on (strip.c).

    The strip is int8 [column, ky, channel]. If the weights have a zero point, offsets[i] is its addend to the sums of
    window i. `fields` are the fields of the C structure.
    """
    depth, step, zero_point = depth_of(view), row_bytes(view), weight_zero_point(view)
    kernel_y, channels = fields["kernel_height"], fields["channels"]
    columns = (rows - 1) * fields["stride_x"] + fields["kernel_width"]

    def meaning(b: Any) -> None:
        with position("start", b.first[0]) as start:
            with loop(("column", columns), ("ky", kernel_y), ("c", channels)) as (column, ky, c):
                # A column of the strip is a tap of the first window that may lie behind it.
                load = lambda iy, ix: lowered(b.x[iy, ix, c], fields["flip"])  # noqa: E731
                value = gathered(fields, start, (ky, column), load, T.int8(fields["fill"]))
                store(b.rows, value, (column * kernel_y + ky) * channels + c)
            if zero_point:
                with loop(("p", rows)) as p:
                    store(b.acc, 0, 0)
                    with loop(("k", depth)) as k:
                        store(b.acc, b.acc[0] + widen(b.rows[p * step + k]), 0)
                    store(b.offsets, b.acc[0] * (0 - zero_point), p)

    operands = (
        Operand("x", (fields["height"], fields["width"], channels), view.inputs[0].dtype),
        Operand("first", (1,), "int32"),
        Operand("windows", (len(fields),), "int32"),
        Operand("rows", ((rows - 1) * step + depth,), "int8", "rw"),
        Operand("offsets", (rows,), "int32", "w"),
        accumulator(),
    )
    arguments = lambda b: [b.x, b.rows, b.offsets, b.first[0], rows, b.windows]  # noqa: E731
    return Block(name, operands, meaning, f"mve_strip_{SUFFIX[view.inputs[0].dtype]}", arguments)
