"""CONV_2D and FULLY_CONNECTED as matrix products by tiles, for any instruction set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.generic.kernels.generic import packing as generic
from stages.backends.kernels.eight_bit import INT8_OFFSET, too_deep, weight_rows, weight_zero_point, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of
from stages.backends.targets.spec import Target
from stages.backends.tiles.product_layer import product_layer
from stages.backends.tiles.product_sizes import (
    FIELDS,
    GATHERED,
    Blocks,
    images,
    reads_in_place,
    rounding_of,
    row_of,
    windows_fields,
)
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.ir.operators.products import Conv2D
from stages.support.lazy import np


class TileProduct(Kernel):
    """A matrix product whose program is generated.

    Pointwise int8 layers are read in place. Windows are gathered into rows first.

    gather  C function of `sources` that gathers windows (gather_windows_image.h)
    """

    row_alignment = 1
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d", "fully_connected"})
    layouts = ("NHWC",)
    gather: ClassVar[str]

    @abstractmethod
    def blocks(self, view: LayerView, params: Any, target: Target) -> Blocks:
        """Return the blocks of the program."""

    @abstractmethod
    def program(self, view: LayerView, params: Any, target: Target) -> str:
        """Return the name of the program: the C function, and its files without suffix."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        op = view.op
        if bad := why_not_types(view) or too_deep(depth_of(view)):
            return bad
        if isinstance(op, Conv2D) and op.groups != 1:
            return f"{op.groups} groups; this kernel supports one"
        return "" if rounding_of(view) else "a multiplier of 1/4 or more that rounds once"

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        blocks, op, offset = self.blocks(view, params, target), view.op, INT8_OFFSET[view.outputs[0].dtype]
        row = row_of(view, blocks.step)
        fields = {
            "x_row": row,
            "y_row": columns_of(view),
            "depth": row,
            "columns": columns_of(view),
            "zero_point": op.output_zero_point - offset,
            "low": op.act_min - offset,
            "high": op.act_max - offset,
            "weight_zero_point": weight_zero_point(view),
        }
        constants = {
            "weights": packed_weights(view, row, blocks),
            "channels": channel_constants(view, blocks, rounding_of(view)),
            "fields": FIELDS.of(fields),
        }
        if not reads_in_place(view, blocks.step):
            constants["windows"] = GATHERED.of(windows_fields(view, blocks.step))
        return constants

    def sources_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        in_place = reads_in_place(view, self.blocks(view, params, target).step)
        return (*(() if in_place else self.sources), f"{self.program(view, params, target)}.S")

    def headers_for(self, view: LayerView, params: Any, target: Target) -> tuple[str, ...]:
        return (*self.headers, f"{self.program(view, params, target)}.h")

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        program, blocks = self.program(view, params, target), self.blocks(view, params, target)
        return product_layer(view, program, self.gather, blocks, rounding_of(view))

    def estimate(self, view: LayerView, blocks: Blocks, step: float, result: float) -> float:
        """Return the instructions: `step` for a step of a tile, `result` for a row of a block."""
        batch, rows = images(view, blocks.step)
        parts = len(blocks.of(columns_of(view))) * -(-rows // blocks.height)
        depth = row_of(view, blocks.step) / blocks.step * step
        gathering = 0.0
        if not reads_in_place(view, blocks.step):
            gathering = 25 + depth_of(view) / 16 + (10 * view.op.kernel[0] if isinstance(view.op, Conv2D) else 10)
        return float(batch * (parts * (depth + 40 + result * blocks.height) + rows * gathering + 100))


def is_clamped(view: LayerView) -> bool:
    """Return whether outputs have bounds narrower than their type."""
    offset = INT8_OFFSET[view.outputs[0].dtype]
    return (view.op.act_min - offset, view.op.act_max - offset) != (-128, 127)


def header(name: str) -> str:
    """Return the header that declares the program `name`."""
    return _HEADER.format(name=name, guard=f"FIRMLINE_{name.upper()}_H")


_HEADER = """/* Generated: see {name}.S. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

void {name}(const int8_t *x, const int8_t *weights, const int32_t *channels, void *y, int32_t rows, const void *fields);

#endif
"""


def packed_weights(view: LayerView, depth: int, blocks: Blocks) -> np.ndarray:
    """Return int8 []: for each block [depth / step][column][step]."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    filled = np.pad(flat, ((0, 0), (0, depth - flat.shape[1])))
    parts = (filled[first : first + used] for first, used in blocks.of(len(filled)))
    return np.concatenate([part.reshape(len(part), -1, blocks.step).transpose(1, 0, 2).reshape(-1) for part in parts])


def channel_constants(view: LayerView, blocks: Blocks, rounding: str) -> np.ndarray:
    """Return int32 []: by block its biases, multipliers, right shifts (and more, `parts_of`)."""
    flat = weight_rows(view, generic.signed_weights(view)[0])
    zero_point = view.op.input_zero_point - INT8_OFFSET[view.inputs[0].dtype]
    bias, multiplier, shift = generic.channels(view, flat, weight_zero_point(view), zero_point).T
    shift = np.where(multiplier == 0, -2, shift)
    right = np.maximum(-shift, 0)
    rows = [bias, multiplier, right - 1 if rounding == "once" else right]
    if rounding == "any":
        rows += [np.maximum(shift, 0), -(right > 0).astype(np.int32)]
    table = np.stack(rows).astype(np.int32)
    return np.concatenate([table[:, first : first + used].reshape(-1) for first, used in blocks.of(len(bias))])
