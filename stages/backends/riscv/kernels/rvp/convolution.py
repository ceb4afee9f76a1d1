"""CONV_2D and FULLY_CONNECTED: pixel panels times all output channels."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from stages.backends.kernels.eight_bit import same_bytes, why_not_types, why_not_weights_order
from stages.backends.kernels.kernel import Kernel, KernelParams, Lowering
from stages.backends.kernels.matrix import has_windows, rows_of
from stages.backends.riscv.kernels.rvp.base import arithmetic, one_rounding_of
from stages.backends.riscv.kernels.rvp.panels import GEOMETRY, block_count, geometry, products, why_not_arithmetic
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np


class GemmParams(KernelParams):
    """`mr` rows (pixels) are multiplied with all output channels at a time.

    panels  how many times `mr` rows are copied to scratch at a time. 0: as many as fit 2 KB on RV32, 4 KB on RV64.
    """

    mr: int = Field(default=5, ge=1, le=5)
    panels: int = Field(default=0, ge=0, le=4096)


class _Gemm(Kernel):
    sources = ("gemm_s8.S", "dot_s8.S", "panel.c", "join_rows.c")
    headers: ClassVar[tuple[str, ...]] = ("gemm.h", "panel.h", "join_rows.h")
    params = GemmParams

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        return why_not_types(view) or self.why_not_shape(view) or why_not_arithmetic(view)

    @abstractmethod
    def why_not_shape(self, view: LayerView) -> str:
        """Return why the kernel cannot compute this shape or layout, '' if it can."""

    def pack_for(self, view: LayerView, params: GemmParams, target: Target) -> Mapping[str, Array]:
        from stages.backends.riscv.kernels.rvp import packing

        bits, lanes = target.word_bits, target.word_bits // 32
        layer_constants, blocks, split = (
            arithmetic(view, signed_activations=True),
            block_count(view, lanes),
            products(view, lanes),
        )
        once = one_rounding_of(view, layer_constants) if rows_of(view) > 1 else None
        zero_point = layer_constants.weight_zero_point
        weights = layer_constants.weights.astype(np.int8).reshape(split.parts, split.columns, -1)
        if split.groups > 1:
            weights = packing.on_diagonals(weights, zero_point, split.groups, split.depth // split.channels)
        parts = [slice(first, first + split.columns) for first in range(0, split.parts * split.columns, split.columns)]
        constants: dict[str, Array] = {
            "weights": np.stack([packing.gemm_weights(part, zero_point, split.run, bits, blocks) for part in weights]),
            "params": np.stack(
                [
                    packing.gemm_params(
                        layer_constants.bias[channels_of_part],
                        layer_constants.multiplier[channels_of_part],
                        layer_constants.rounders.part(channels_of_part),
                        once.part(channels_of_part) if once else None,
                        bits,
                        blocks,
                    )
                    for channels_of_part in parts
                ]
            ),
        }
        if has_windows(view):
            constants["geometry"] = GEOMETRY.of(geometry(view, lanes))
        return constants

    def candidates(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Five or four rows: with a tail of few rows the smaller block can be cheaper."""
        rows = rows_of(view)
        return tuple(self.params(mr=mr) for mr in (5, 4)[: 2 if rows > 4 else 1])

    def smaller(self, view: LayerView, target: Target) -> tuple[GemmParams, ...]:
        """Two panels: half of the scratch or less."""
        return (self.params(panels=2),)

    def lower(self, view: LayerView, params: GemmParams, target: Target) -> Lowering:
        from stages.backends.riscv.kernels.rvp.convolution_tir import Gemm, gemm

        return gemm(Gemm(view, target.word_bits // 32), params.mr, params.panels)

    def cost(self, view: LayerView, params: GemmParams, target: Target) -> float:
        from stages.backends.riscv.kernels.rvp.gemm_cost import gemm_cost

        return gemm_cost(view, params.mr, target.word_bits // 32, params.panels)


class Conv2d(_Gemm):
    """Convolution on NHWC images with any window, stride, dilation and padding.

    A panel of five pixels is gathered into scratch once and multiplied with all channels in one call. Pointwise layers
    read their rows in place. Groups are separate products, or several groups form one.
    """

    name = "rvp.gemm_s8"
    row_alignment = 1
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"conv2d"})

    def why_not_shape(self, view: LayerView) -> str:
        op, x = view.op, view.inputs[0]
        if op.groups != 1 and rows_of(view) == 1:
            return f"{op.groups} groups on a single pixel are not supported"
        if x.layout == "NCHW":
            return "the input is NCHW; this kernel reads NHWC"
        if x.shape[0] != 1 and has_windows(view):
            return f"a batch of {x.shape[0]} with windows is not supported"
        return ""

    def overlays(self, view: LayerView) -> bool:
        """Return whether results may replace the input: a panel holds everything they depend on."""
        return view.op.groups == 1 and same_bytes(view.inputs[0], view.outputs[0]) and not has_windows(view)


class FullyConnected(_Gemm):
    """Fully connected layer: rows of x times all units.

    A single row is a dot product over streamed weights, 4 * lanes units at once.
    """

    name = "rvp.dot_s8"
    estimate_error = 1.25
    ops: ClassVar[frozenset[str]] = frozenset({"fully_connected"})

    def why_not_shape(self, view: LayerView) -> str:
        return why_not_weights_order(view)
