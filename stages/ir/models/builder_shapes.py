"""The ModelBuilder methods of operators that move or select data."""

from collections.abc import Sequence

import numpy as np

from stages.ir.models.stated_shapes import stated_shapes
from stages.ir.models.tflite_writer import BuildError, Tensor, TFLiteWriter, int32_array

Quant = tuple[float, int]


def _list(values: Sequence[int]) -> Tensor:
    """Return a constant that determines a shape, without a place in the file yet."""
    array = int32_array(values)
    return Tensor(-1, "", array.shape, "int32", constant=array)


class ShapeOperators(TFLiteWriter):
    """Methods for PAD, CONCATENATION, RESHAPE, TRANSPOSE, SLICE, SPLIT and similar operators."""

    def pad(self, x: Tensor, paddings: Sequence[tuple[int, int]], *, name: str = "pad") -> Tensor:
        """PAD with the value 0 (the zero point): (before, after) for each axis."""
        constant = self._int32(f"{name}/paddings", np.asarray(paddings))
        (shape,) = stated_shapes("PAD", name, [x, constant], {})
        output = self._like(x, name, shape)
        self.operator("PAD", [x, constant], [output], "PadOptions", version=self._data_version(x))
        return output

    def concatenation(
        self, inputs: Sequence[Tensor], axis: int = -1, *, out: Quant | None = None, name: str = "concat"
    ) -> Tensor:
        """CONCATENATION along `axis`.

        int8 kernels demand equal quantization of inputs and output; uint8 kernels requantize.
        """
        first = inputs[0]
        if len({t.dtype for t in inputs}) != 1:
            raise BuildError(f"{name}: cannot join {', '.join(t.dtype for t in inputs)}")
        # A non-negative axis, as the converter writes it.
        fields = {"axis": axis % max(1, len(first.shape)) if axis < 0 else axis, "fusedActivationFunction": 0}
        (shape,) = stated_shapes("CONCATENATION", name, inputs, fields)
        output = self._like(first, name, shape) if out is None else self.tensor(name, shape, first.dtype, *out)
        version = self._data_version(first)
        self.operator("CONCATENATION", list(inputs), [output], "ConcatenationOptions", fields, version=version)
        return output

    def reshape(self, x: Tensor, shape: Sequence[int], *, name: str = "reshape") -> Tensor:
        """RESHAPE to a static shape; one size may be -1."""
        (shape,) = stated_shapes("RESHAPE", name, [x, _list(shape)], {})
        output = self._like(x, name, shape)
        fields = {"newShape": int32_array(shape)}
        self.operator("RESHAPE", [x, self._int32(f"{name}/shape", shape)], [output], "ReshapeOptions", fields)
        return output

    def squeeze(self, x: Tensor, axes: Sequence[int], *, name: str = "squeeze") -> Tensor:
        """SQUEEZE: drop axes of size 1."""
        fields = {"squeezeDims": int32_array(list(axes))}
        (shape,) = stated_shapes("SQUEEZE", name, [x], fields)
        output = self._like(x, name, shape)
        self.operator("SQUEEZE", [x], [output], "SqueezeOptions", fields)
        return output

    def transpose(self, x: Tensor, permutation: Sequence[int], *, name: str = "transpose") -> Tensor:
        """TRANSPOSE: axis i of the result is axis permutation[i] of the input."""
        (shape,) = stated_shapes("TRANSPOSE", name, [x, _list(permutation)], {})
        output = self._like(x, name, shape)
        constant = self._int32(f"{name}/permutation", permutation)
        self.operator("TRANSPOSE", [x, constant], [output], "TransposeOptions", version=self._data_version(x))
        return output

    def slice(self, x: Tensor, begin: Sequence[int], size: Sequence[int], *, name: str = "slice") -> Tensor:
        """SLICE: `size` elements of each axis from `begin`; size -1 is the rest."""
        (shape,) = stated_shapes("SLICE", name, [x, _list(begin), _list(size)], {})
        output = self._like(x, name, shape)
        constants = [self._int32(f"{name}/begin", begin), self._int32(f"{name}/size", size)]
        self.operator("SLICE", [x, *constants], [output], "SliceOptions", version=self._data_version(x))
        return output

    def strided_slice(
        self,
        x: Tensor,
        begin: Sequence[int],
        end: Sequence[int],
        strides: Sequence[int] | None = None,
        *,
        shrink_axes: Sequence[int] = (),
        name: str = "strided_slice",
    ) -> Tensor:
        """STRIDED_SLICE as x[begin:end:stride] in Python.

        Axes in `shrink_axes` are indexed by `begin` and dropped.
        """
        strides = list(strides) if strides is not None else [1] * len(x.shape)
        parts = {"begin": begin, "end": end, "strides": strides}
        masks = dict.fromkeys(("beginMask", "endMask", "ellipsisMask", "newAxisMask"), 0)
        fields = masks | {"shrinkAxisMask": sum(1 << axis for axis in shrink_axes), "offset": False}
        (shape,) = stated_shapes("STRIDED_SLICE", name, [x, *map(_list, parts.values())], fields)
        output = self._like(x, name, shape)
        constants = [self._int32(f"{name}/{part}", values) for part, values in parts.items()]
        version = self._data_version(x)
        self.operator("STRIDED_SLICE", [x, *constants], [output], "StridedSliceOptions", fields, version=version)
        return output

    def split(self, x: Tensor, parts: int, axis: int = -1, *, name: str = "split") -> list[Tensor]:
        """SPLIT into `parts` equal tensors along `axis`."""
        axis = axis % max(1, len(x.shape)) if axis < 0 else axis
        constant, fields = self.constant(f"{name}/axis", int32_array(axis)), {"numSplits": parts}
        shapes = stated_shapes("SPLIT", name, [constant, x], fields, parts)
        outputs = [self._like(x, name, shape) for shape in shapes]
        self.operator("SPLIT", [constant, x], outputs, "SplitOptions", fields, version=self._data_version(x))
        return outputs

    def resize_nearest_neighbor(
        self,
        x: Tensor,
        size: Sequence[int],
        *,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
        name: str = "resize",
    ) -> Tensor:
        """RESIZE_NEAREST_NEIGHBOR to (height, width)."""
        fields = {"alignCorners": align_corners, "halfPixelCenters": half_pixel_centers}
        (shape,) = stated_shapes("RESIZE_NEAREST_NEIGHBOR", name, [x, _list(size)], fields)
        output = self._like(x, name, shape)
        inputs = [x, self._int32(f"{name}/size", size)]
        version = 3 if half_pixel_centers or align_corners else self._data_version(x)
        self.operator(
            "RESIZE_NEAREST_NEIGHBOR", inputs, [output], "ResizeNearestNeighborOptions", fields, version=version
        )
        return output

    def _like(self, x: Tensor, name: str, shape: Sequence[int]) -> Tensor:
        """Declare a tensor with x's dtype and (per-tensor) quantization and another shape."""
        return self.tensor(name, shape, x.dtype, x.scale[0] if x.scale else None, (x.zero_point or (0,))[0])

    def _int32(self, name: str, values: Sequence[int] | np.ndarray) -> Tensor:
        return self.constant(name, int32_array(values))

    @staticmethod
    def _data_version(x: Tensor) -> int:
        """Return the version of a data movement operator: int8 needs version 2."""
        return 2 if x.dtype == "int8" else 1
