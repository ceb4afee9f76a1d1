"""Operators that only move data, where TVM 0.27 lacks them or differs from the reference."""

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter, TensorWrapper

from stages.import_model.file_tables import options_of
from stages.ir.model_info import ModelInfo


class MovingConverter(OperatorConverter):  # type: ignore[misc]  # TVM has no type information
    """The converter's methods for operators that only move data."""

    info: ModelInfo

    def convert_reshape(self, op: Any) -> relax.Expr:
        """Reshape without requantization; TVM requantizes uint8 if the output's scale differs."""
        source, result = self.get_input_tensors(op)[0], self.get_output_tensors(op)[0]
        result_shape = self.info.tensors[int(result.tensor_idx)].shape
        return relax.op.reshape(self.get_expr(source.tensor_idx), result_shape)

    def convert_expand_dims(self, op: Any) -> relax.Expr:
        """Reshape. TVM 0.27 passes an unknown argument to `relax.op.expand_dims`."""
        return self.convert_reshape(op)

    def convert_squeeze(self, op: Any) -> relax.Expr:
        """Squeeze; an empty axis list removes all axes of size 1, which TVM lacks."""
        source = self.get_input_tensors(op)[0]
        shape = self.info.tensors[int(source.tensor_idx)].shape
        options = options_of(op, "SqueezeOptions")
        axes = [int(axis) % len(shape) for axis in options.SqueezeDimsAsNumpy()] if options.SqueezeDimsLength() else []
        axes = axes or [axis for axis, size in enumerate(shape) if size == 1]
        return relax.op.squeeze(self.get_expr(source.tensor_idx), axis=sorted(axes))

    def convert_resize_nearest_neighbor(self, op: Any) -> relax.Expr:
        """Resize with LiteRT's rounding; TVM picks the wrong neighbour for align_corners."""
        source, size = self.get_input_tensors(op)
        options = options_of(op, "ResizeNearestNeighborOptions")
        coordinates, rounding = "asymmetric", "floor"
        if options.AlignCorners():
            coordinates, rounding = "align_corners", "round_prefer_ceil"
        elif options.HalfPixelCenters():
            # floor((i + 0.5) * scale) is the half-pixel coordinate plus one half, rounded down.
            coordinates, rounding = "half_pixel", "round_prefer_ceil"
        data, result_size = self.get_expr(source.tensor_idx), [int(value) for value in self.get_tensor_value(size)]
        return relax.op.image.resize2d(data, result_size, None, "NHWC", "nearest_neighbor", coordinates, rounding)

    def convert_split(self, op: Any) -> relax.Expr:
        """Split; the axis may be a scalar or a list with one element. TVM takes only the first."""
        axis, source = self.get_input_tensors(op)
        number = options_of(op, "SplitOptions").NumSplits()
        axis_index = int(self.get_tensor_value(axis).reshape(-1)[0])
        return relax.op.split(self.get_expr(source.tensor_idx), number, axis=axis_index % self._rank(source))

    def convert_split_v(self, op: Any) -> relax.Expr:
        """Split by sizes; one may be -1 for the rest."""
        source, parts, axis = self.get_input_tensors(op)
        axis_index = int(self.get_tensor_value(axis).reshape(-1)[0]) % self._rank(source)
        sizes = [int(size) for size in self.get_tensor_value(parts).reshape(-1)]
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.info.tensors[int(source.tensor_idx)].shape[axis_index] - sum(sizes) - 1
        ends = [int(end) for end in np.cumsum(sizes)[:-1]]
        return relax.op.split(self.get_expr(source.tensor_idx), ends, axis=axis_index)

    def convert_transpose(self, op: Any) -> relax.Expr:
        """Transpose, with the axes as plain integers."""
        source, axes = self.get_input_tensors(op)
        order = [int(axis) % self._rank(source) for axis in self.get_tensor_value(axes)]
        return relax.op.permute_dims(self.get_expr(source.tensor_idx), order)

    def convert_slice(self, op: Any) -> relax.Expr:
        """Slice, with begin and end between 0 and the size."""
        source, begin, size = self.get_input_tensors(op)
        shape = self.info.tensors[int(source.tensor_idx)].shape
        starts = [int(value) for value in self.get_tensor_value(begin)]
        counts = [int(value) for value in self.get_tensor_value(size)]
        ends = [shape[axis] if count == -1 else starts[axis] + count for axis, count in enumerate(counts)]
        return self._slice(source, starts, ends, [1] * len(shape))

    def convert_strided_slice(self, op: Any) -> relax.Expr:
        """Slice with strides; drop shrunk axes.

        Limits are clamped as in the reference (StartForAxis, StopForAxis). TVM passes negative indices on if no mask is
        set, and Relax counts them differently.
        """
        source, begin, end, stride = self.get_input_tensors(op)
        options = options_of(op, "StridedSliceOptions")
        shape = self.info.tensors[int(source.tensor_idx)].shape
        limits = [self.get_tensor_value(t).reshape(-1) for t in (begin, end, stride)]
        starts, ends, steps, shrunk = [], [], [], []
        for axis, size in enumerate(shape):
            bit = 1 << axis
            if axis >= len(limits[0]):
                first, last, step = 0, size, 1
            else:
                first, last, step = (int(values[axis]) for values in limits)
                span = slice(None if options.BeginMask() & bit else first, None if options.EndMask() & bit else last)
                if options.ShrinkAxisMask() & bit:
                    first, step = 0 if options.BeginMask() & bit else first % size, 1
                    last = first + 1
                    shrunk.append(axis)
                else:
                    first, last, step = slice(span.start, span.stop, step).indices(size)
            starts.append(first)
            ends.append(last)
            steps.append(step)
        sliced = self._slice(source, starts, ends, steps)
        return relax.op.squeeze(sliced, axis=shrunk) if shrunk else sliced

    def _slice(self, source: TensorWrapper, starts: list[int], ends: list[int], steps: list[int]) -> relax.Expr:
        """Slice. `ends` may be -1, before the first element; Relax counts such ends from behind."""
        axes, shape = list(range(len(starts))), self.info.tensors[int(source.tensor_idx)].shape
        ends = [end if end >= 0 else end - size for end, size in zip(ends, shape, strict=True)]
        return relax.op.strided_slice(self.get_expr(source.tensor_idx), axes, starts, ends, steps)

    def _rank(self, tensor: TensorWrapper) -> int:
        return len(self.info.tensors[int(tensor.tensor_idx)].shape)
