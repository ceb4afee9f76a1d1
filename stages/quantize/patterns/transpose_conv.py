"""TRANSPOSE_CONV: a convolution of stride 1 for each phase, and an interleaving transpose.

    dequantize(x) -> conv2d_transpose(., weights) [-> add bias] -> quantize [-> clip]

All phases are channels of one convolution, padded with zero weights where a phase has fewer taps. If that would waste
many multiplications, each phase is a convolution, and the results are concatenated.
"""

from itertools import product
from math import prod

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from stages.ir.arithmetic.transposed import PhaseAxis, phase_weights
from stages.ir.arrays import Array
from stages.ir.graph import Concatenation, Conv2D, Move, Tensor
from stages.ir.layers import Rounding
from stages.quantize.constant_channels import fold_constant_channels
from stages.quantize.operator import Operator, activated, dequantized
from stages.quantize.patterns.convolution import (
    check_results,
    columns_of,
    fixed_multipliers,
    of_onnx,
    real_multipliers,
    weight_zero_point,
)
from stages.quantize.real_products import sums
from stages.quantize.writer import GraphWriter

# Wasted multiplications, per output of the phases, that cost as much as a separate convolution with its copy.
_COPY_COST = 8

Axes = tuple[PhaseAxis, PhaseAxis]


def transpose_conv(operator: Operator, writer: GraphWriter) -> None:
    """TRANSPOSE_CONV; the multipliers are as in CONV_2D."""
    x, weights, bias = wildcard(), wildcard(), wildcard()
    core = is_op("relax.nn.conv2d_transpose")(dequantized(x), weights)
    form = "quantize(conv2d_transpose(dequantize(x), constant weights) + constant bias)"
    match = operator.expect(activated(is_op("relax.add")(core, bias) | core), form)
    source, out = operator.data(match[x]), operator.outputs[0]
    filters = operator.parameters(match[weights]).map(lambda part: part.transpose(1, 2, 3, 0))  # from IOHW
    by_file = operator.onnx or source.dtype == "uint8"
    zero_point = weight_zero_point(operator, filters) if by_file else 0
    wide = source.dtype == "int16"
    constants = dict[str, Array]()
    rounding: Rounding = "wide" if wide else "double"
    if bias in match:
        bias_values = operator.parameters(match[bias]).values.reshape(-1)
        constants["bias"] = bias_values.astype(np.int64 if wide else np.int32)
    if operator.onnx:
        rounding, fixed = of_onnx(operator, filters, constants.get("bias"), zero_point)
        constants |= columns_of(fixed)
    else:
        reals = real_multipliers(filters, source.dtype, source.scale, out.scale)
        constants |= columns_of(fixed_multipliers(operator, reals, 7 if wide else 30))
        rows = filters.values.reshape(len(filters.values), -1)
        check_results(operator, reals, sums(rows, constants.get("bias"), source.dtype, source.zero_point, zero_point))
    strides = [int(stride) for stride in match[core].attrs.strides]
    sizes = zip(source.shape[1:3], out.shape[1:3], filters.values.shape[1:3], strides, strict=True)
    height, width = (PhaseAxis.of(*axis_sizes) for axis_sizes in sizes)
    phases = _Phases(operator, writer, source, out, (height, width), zero_point, rounding)
    phases.write(filters.values, constants)


class _Phases:
    """Writes the layers of all phases."""

    def __init__(
        self,
        operator: Operator,
        writer: GraphWriter,
        source: Tensor,
        out: Tensor,
        axes: Axes,
        zero_point: int,
        rounding: Rounding,
    ) -> None:
        self.operator, self.writer, self.source, self.out = operator, writer, source, out
        self.axes, self.zero_point, self.rounding = axes, zero_point, rounding
        self.strides = axes[0].stride, axes[1].stride
        self.phases = list(product(range(self.strides[0]), range(self.strides[1])))

    def write(self, weights: Array, constants: dict[str, Array]) -> None:
        """Write the layers."""
        most_taps = self.axes[0].most_taps, self.axes[1].most_taps
        channels, phases = weights.shape[0], len(self.phases)
        if self._is_split_cheaper(most_taps, weights.shape[3]):
            parts = [self._convolution(weights, constants, [phase], self._taps(phase)) for phase in self.phases]
            joined = self._image(channels * phases, "phases")
            self.writer.layer(Concatenation(axis=3), parts, joined)
        else:
            joined = self._convolution(weights, constants, self.phases, most_taps)
        self._interleaved(joined, channels)

    def _is_split_cheaper(self, most_taps: tuple[int, int], depth: int) -> bool:
        """Whether separate convolutions save more multiplications than the extra copies cost.

        No phase may begin inside the image.
        """
        phase_taps = [self._taps(phase) for phase in self.phases]
        paddings = [axis.padding(taps)[0] for pair in phase_taps for axis, taps in zip(self.axes, pair, strict=True)]
        saved = len(phase_taps) * prod(most_taps) - sum(map(prod, phase_taps))
        return min(paddings) >= 0 and saved * depth > _COPY_COST * len(phase_taps)

    def _taps(self, phase: tuple[int, int]) -> tuple[int, int]:
        return self.axes[0].phase_taps(phase[0]), self.axes[1].phase_taps(phase[1])

    def _image(self, channels: int, suffix: str) -> Tensor:
        shape = (self.out.shape[0], self.axes[0].count, self.axes[1].count, channels)
        like = self.out.model_copy(update={"shape": shape})
        return self.writer.intermediate(like, suffix, self.out.quant)

    def _convolution(
        self, weights: Array, constants: dict[str, Array], phases: list[tuple[int, int]], taps: tuple[int, int]
    ) -> Tensor:
        """Outputs of these phases, in consecutive channels."""
        (rows, columns), source = self.axes, self.source
        parts = [
            phase_weights(weights, rows.taps_of(row, taps[0]), columns.taps_of(column, taps[1]), self.zero_point)
            for row, column in phases
        ]
        values = np.concatenate(parts)
        channels = len(weights)
        phase_constants = {
            name: np.tile(np.broadcast_to(array, channels), len(phases)) for name, array in constants.items()
        }
        if source.dtype != "int16" and not self.operator.onnx:
            values = fold_constant_channels(values, phase_constants, source.dtype, source.zero_point, self.zero_point)
        phase_constants["weights"] = values
        (top, bottom), (left, right) = rows.padding(taps[0]), columns.padding(taps[1])
        low, high = self.operator.clamp
        op = Conv2D(
            kernel=taps,
            stride=(1, 1),
            padding=(top, left, bottom, right),
            dilation=(1, 1),
            in_channels=source.shape[3],
            out_channels=len(values),
            input_zero_point=source.zero_point,
            weight_zero_point=self.zero_point,
            output_zero_point=self.out.zero_point,
            act_min=low,
            act_max=high,
            rounding=self.rounding,
        )
        name = "phases" if len(phases) > 1 else f"phase {phases[0][0]}, {phases[0][1]}"
        return self.writer.layer(op, [source], self._image(len(values), name), phase_constants)

    def _interleaved(self, joined: Tensor, channels: int) -> None:
        """Write the output: [N, H, W, (rows, columns, C)] as [N, H, rows, W, columns, C], cropped."""
        (rows, columns), writer, out = self.axes, self.writer, self.out
        batch, height, width, _ = joined.shape
        full_shape, image = (batch, height * rows.stride, width * columns.stride, channels), out
        if full_shape != out.shape:
            image = writer.intermediate(out.model_copy(update={"shape": full_shape}), "whole", out.quant)
        writer.layer(Move(kind="depth_to_space", params={"block": list(self.strides)}), [joined], image)
        if image is out:
            return
        params = {"begin": [0, rows.begin, columns.begin, 0], "stride": [1] * 4, "size": list(out.shape)}
        writer.layer(Move(kind="slice", params=params), [image], out)


PATTERNS = {"TRANSPOSE_CONV": transpose_conv}
