"""The operators that move or select data without arithmetic: their part of ModelBuilder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stages.models.tflite_writer import BuildError, Tensor, TFLiteWriter

Quant = tuple[float, int]


def checked_axis(name: str, axis: int, x: Tensor) -> int:
    """An axis counted from the front; BuildError if the tensor has no such axis."""
    if not -len(x.shape) <= axis < len(x.shape):
        raise BuildError(f"{name}: axis {axis} of a tensor {x.shape}")
    return axis % len(x.shape)


class ShapeOperators(TFLiteWriter):
    """PAD, CONCATENATION, RESHAPE, SQUEEZE, TRANSPOSE, SLICE, STRIDED_SLICE, SPLIT, RESIZE_NEAREST_NEIGHBOR.

    Results have their input's dtype and quantization.
    """

    def pad(self, x: Tensor, paddings: Sequence[tuple[int, int]], *, name: str = "pad") -> Tensor:
        """PAD with the value 0 (the zero point): (before, after) for each axis."""
        if len(paddings) != len(x.shape) or min(min(pair) for pair in paddings) < 0:
            raise BuildError(f"{name}: paddings {list(paddings)} for an input {x.shape}")
        constant = self._int32(f"{name}/paddings", np.asarray(paddings))
        shape = [size + before + after for size, (before, after) in zip(x.shape, paddings, strict=True)]
        made = self._like(x, name, shape)
        self.operator("PAD", [x, constant], [made], "PadOptions", version=self._data_version(x))
        return made

    def concatenation(
        self, inputs: Sequence[Tensor], axis: int = -1, *, out: Quant | None = None, name: str = "concat"
    ) -> Tensor:
        """CONCATENATION. int8 kernels demand equal quantization of inputs and output; uint8 ones requantize."""
        first = inputs[0]
        axis = checked_axis(name, axis, first)
        if len({(t.dtype, len(t.shape), t.shape[:axis], t.shape[axis + 1 :]) for t in inputs}) != 1:
            raise BuildError(f"{name}: cannot join {[t.shape for t in inputs]} along axis {axis}")
        shape = list(first.shape)
        shape[axis] = sum(t.shape[axis] for t in inputs)
        made = self._like(first, name, shape) if out is None else self.tensor(name, shape, first.dtype, *out)
        fields = {"axis": axis, "fusedActivationFunction": 0}
        version = self._data_version(first)
        self.operator("CONCATENATION", list(inputs), [made], "ConcatenationOptions", fields, version=version)
        return made

    def reshape(self, x: Tensor, shape: Sequence[int], *, name: str = "reshape") -> Tensor:
        """RESHAPE to a static shape; one size may be -1."""
        shape = list(shape)
        if -1 in shape:
            known = int(np.prod([size for size in shape if size != -1]))
            shape[shape.index(-1)] = int(np.prod(x.shape)) // max(known, 1)
        if int(np.prod(shape)) != int(np.prod(x.shape)):
            raise BuildError(f"{name}: {x.shape} does not reshape to {shape}")
        made = self._like(x, name, shape)
        fields = {"newShape": np.asarray(shape, dtype=np.int32)}
        self.operator("RESHAPE", [x, self._int32(f"{name}/shape", shape)], [made], "ReshapeOptions", fields)
        return made

    def squeeze(self, x: Tensor, axes: Sequence[int], *, name: str = "squeeze") -> Tensor:
        """SQUEEZE: drops axes of size 1."""
        gone = {checked_axis(name, axis, x) for axis in axes}
        if any(x.shape[axis] != 1 for axis in gone):
            raise BuildError(f"{name}: axes {list(axes)} of {x.shape} are not all of size 1")
        made = self._like(x, name, [size for axis, size in enumerate(x.shape) if axis not in gone])
        fields = {"squeezeDims": np.asarray(list(axes), dtype=np.int32)}
        self.operator("SQUEEZE", [x], [made], "SqueezeOptions", fields)
        return made

    def transpose(self, x: Tensor, permutation: Sequence[int], *, name: str = "transpose") -> Tensor:
        """TRANSPOSE: axis i of the result is axis permutation[i] of the input."""
        if sorted(permutation) != list(range(len(x.shape))):
            raise BuildError(f"{name}: {list(permutation)} does not permute the axes of {x.shape}")
        made = self._like(x, name, [x.shape[axis] for axis in permutation])
        constant = self._int32(f"{name}/permutation", permutation)
        self.operator("TRANSPOSE", [x, constant], [made], "TransposeOptions", version=self._data_version(x))
        return made

    def slice(self, x: Tensor, begin: Sequence[int], size: Sequence[int], *, name: str = "slice") -> Tensor:
        """SLICE: `size` elements of each axis from `begin`; size -1 is all that follow."""
        self._check_lengths(name, x, begin=begin, size=size)
        sizes = [full - start if want == -1 else want for full, start, want in zip(x.shape, begin, size, strict=True)]
        if any(start < 0 or start + want > full for full, start, want in zip(x.shape, begin, sizes, strict=True)):
            raise BuildError(f"{name}: begin {list(begin)}, size {list(size)} leave an input {x.shape}")
        made = self._like(x, name, sizes)
        constants = [self._int32(f"{name}/begin", begin), self._int32(f"{name}/size", size)]
        self.operator("SLICE", [x, *constants], [made], "SliceOptions", version=self._data_version(x))
        return made

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
        """STRIDED_SLICE as x[begin:end:stride] in Python; axes in `shrink_axes` are indexed by `begin` and dropped."""
        strides = list(strides) if strides is not None else [1] * len(x.shape)
        self._check_lengths(name, x, begin=begin, end=end, strides=strides)
        if 0 in strides:
            raise BuildError(f"{name}: a stride of 0")
        shape = []
        for axis, (size, start, stop, step) in enumerate(zip(x.shape, begin, end, strides, strict=True)):
            if axis not in shrink_axes:
                shape.append(len(range(*slice(start, stop, step).indices(size))))
        made = self._like(x, name, shape)
        parts = {"begin": begin, "end": end, "strides": strides}
        constants = [self._int32(f"{name}/{part}", values) for part, values in parts.items()]
        masks = dict.fromkeys(("beginMask", "endMask", "ellipsisMask", "newAxisMask"), 0)
        fields = masks | {"shrinkAxisMask": sum(1 << axis for axis in shrink_axes), "offset": False}
        version = self._data_version(x)
        self.operator("STRIDED_SLICE", [x, *constants], [made], "StridedSliceOptions", fields, version=version)
        return made

    def split(self, x: Tensor, parts: int, axis: int = -1, *, name: str = "split") -> list[Tensor]:
        """SPLIT into `parts` equal tensors along `axis`."""
        axis = checked_axis(name, axis, x)
        if x.shape[axis] % parts:
            raise BuildError(f"{name}: axis {axis} of {x.shape} does not split into {parts} equal parts")
        shape = [size // parts if index == axis else size for index, size in enumerate(x.shape)]
        constant = self.constant(f"{name}/axis", np.asarray(axis, dtype=np.int32))
        made = [self._like(x, name, shape) for _ in range(parts)]
        version = self._data_version(x)
        self.operator("SPLIT", [constant, x], made, "SplitOptions", {"numSplits": parts}, version=version)
        return made

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
        if len(size) != 2:
            raise BuildError(f"size is [height, width], got {list(size)}")
        if len(x.shape) != 4:
            raise BuildError(f"{name}: resizing needs an NHWC input, got {x.shape}")
        made = self._like(x, name, (x.shape[0], *size, x.shape[3]))
        fields = {"alignCorners": align_corners, "halfPixelCenters": half_pixel_centers}
        inputs = [x, self._int32(f"{name}/size", size)]
        version = 3 if half_pixel_centers or align_corners else self._data_version(x)
        self.operator(
            "RESIZE_NEAREST_NEIGHBOR", inputs, [made], "ResizeNearestNeighborOptions", fields, version=version
        )
        return made

    def _like(self, x: Tensor, name: str, shape: Sequence[int]) -> Tensor:
        """A tensor of x's dtype and (per-tensor) quantization in another shape."""
        return self.tensor(name, shape, x.dtype, x.scale[0] if x.scale else None, (x.zero_point or (0,))[0])

    @staticmethod
    def _check_lengths(name: str, x: Tensor, **lists: Sequence[int]) -> None:
        """Each list must have one entry per axis."""
        for part, values in lists.items():
            if len(values) != len(x.shape):
                raise BuildError(
                    f"{name}: {part} {list(values)} needs {len(x.shape)} entries, one per axis of {x.shape}"
                )

    def _int32(self, name: str, values: Sequence[int] | np.ndarray) -> Tensor:
        return self.constant(name, np.asarray(values, dtype=np.int32))

    @staticmethod
    def _data_version(x: Tensor) -> int:
        """int8 came with version 2 of each of these operators."""
        return 2 if x.dtype == "int8" else 1
