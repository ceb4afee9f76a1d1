"""CONV_2D whose windows are few bytes, multiplied like single pixels.

TIR of convolutions with few window bytes: one-row panels for pointwise_s8.S.

Tiles, remaining rows and the staging of incomplete registers are as in the GEMM kernels.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from stages.backends.kernels.eight_bit import weight_zero_point, why_not_nhwc, why_not_types
from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.matrix import columns_of, depth_of, has_windows, rows_of, run_elements
from stages.backends.kernels.tir.block import Block
from stages.backends.kernels.tir.words import byte
from stages.backends.riscv.kernels.rvp.convolution import Call, Gemm, gemm
from stages.backends.riscv.kernels.rvp.panels import (
    GEOMETRY,
    PANEL_BYTES,
    block_count,
    geometry,
    needs_stage,
    why_not_arithmetic,
)
from stages.backends.riscv.kernels.rvp.pointwise import (
    MOST_CHUNKS,
    Sizes,
    block_instructions,
    packed,
    params_shape,
    product,
)
from stages.backends.riscv.kernels.rvp.pointwise import why_not_shape as why_not_pointwise
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


class FewInputs(Kernel):
    """Convolution with windows of up to three chunks of four bytes.

    Each run (`run_elements`) begins a new chunk. A panel has one row and is gathered into scratch. The constants of a
    channel block stay in registers for all panels of a tile. Neighbouring windows are unpacked from shared registers.
    """

    name = "rvp.few_inputs_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})
    roundings: ClassVar[frozenset[str]] = frozenset({"double"})
    sources = ("pointwise_s8.S", "few_inputs.c", "panel.c", "join_rows.c")
    headers: ClassVar[tuple[str, ...]] = ("pointwise.h", "few_inputs.h", "join_rows.h")

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or _why_not_shape(view, target) or why_not_arithmetic(view)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        lanes = target.word_bits // 32
        constants = {"params": packed(view, run_elements(view), target.word_bits, block_count(view, lanes))[None]}
        return constants | ({"geometry": GEOMETRY.of(geometry(view, lanes))} if has_windows(view) else {})

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        """Return the convolution: a matrix product with one-row panels."""
        lanes = target.word_bits // 32
        return gemm(_FewInputs(view, lanes), 1)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return the instructions of unpacked chunks, pixels, tiles, border windows and staging."""
        op, lanes = view.op, target.word_bits // 32
        rows, blocks, chunks = rows_of(view), block_count(view, lanes), _chunks(view)
        height, width = view.outputs[0].shape[1:3]
        step = op.in_channels * op.stride[1]
        unpacked = {1: 5.5, 2: 6.5, 3: 7.5}.get(step, 7 if step % 4 == 0 else 16)
        tiles = -(-rows * chunks * 4 * lanes // PANEL_BYTES[lanes])
        lines = height * chunks if has_windows(view) else tiles * chunks
        top, left, bottom, right = op.padding
        outside = min(height, -(-top // op.stride[0]) + -(-bottom // op.stride[0])) * width
        outside += min(width, -(-left // op.stride[1]) + -(-right // op.stride[1])) * height
        product = block_instructions(view, chunks) + chunks
        registers, rest = divmod(columns_of(view), 4 * lanes)
        staged = rows * (9 * registers + (15 if rest else 5)) if needs_stage(view, lanes) else 0
        tile_cost = blocks * (rows * product + 55 * tiles) + tiles * 110
        return float(
            tile_cost + rows * chunks * unpacked + lines * 120 + min(outside, rows) * (60 + 90 * chunks) + staged
        )


def _chunks(view: LayerView) -> int:
    run = run_elements(view)
    return int(depth_of(view) // run * -(-run // 4))


def _why_not_shape(view: LayerView, target: Target) -> str:
    op, x = view.op, view.inputs[0]
    if target.word_bits == 32 and not why_not_pointwise(view, target):
        return "pixels are whole registers; rvp.pointwise_s8 reads them in place"
    if x.dtype != "int8" or weight_zero_point(view):
        return "the tensors are uint8; this kernel supports int8"
    if op.groups != 1:
        return f"{op.groups} groups; this kernel supports one"
    if rows_of(view) == 1:
        return "a single pixel is not supported"
    if x.shape[0] != 1 and has_windows(view):
        return f"a batch of {x.shape[0]} with windows is not supported"
    if _chunks(view) > MOST_CHUNKS:
        return f"windows of {_chunks(view)} chunks of four bytes; the limit is {MOST_CHUNKS}"
    return why_not_nhwc(view)


class _FewInputs(Gemm):
    """Blocks of one layer; panels have one row."""

    def windows_call(self, rows: int, panels: int) -> Call:
        return "rvp_few_inputs_windows", lambda b: [b.panel, b.x, b.first[0], panels, b.geometry]

    def rows_call(self, rows: int, panels: int) -> Call:
        return "rvp_few_inputs_rows", lambda b: [b.panel, b.x, panels, self.depth]

    def constants(self) -> dict[str, tuple[tuple[int, ...], str]]:
        return {"params": (params_shape(self._sizes(1)), "int32")}

    def _sizes(self, rows: int) -> Sizes:
        width = self.blocks * 4 * self.lanes if self.staged else self.columns
        return Sizes(rows, self.chunks, self.blocks, self.lanes, width)

    def multiply(self, name: str, rows: int, panels: int) -> Block:
        def activation(b: Any, row: Any, chunk: Any, lane: Any, k: Any) -> Any:
            return byte(b.panel[self.word_of(1, row, chunk, 0, lane)], k)

        return product(
            name, self.view, self.panel(1, panels), self._sizes(panels), activation, f"rvp_pointwise_s8_p{self.chunks}"
        )
