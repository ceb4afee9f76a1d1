"""TFLM's signal operators on int16 frames: kernels of all families with 16-bit lanes."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from stages.backends.kernels.kernel import Kernel, Lowering
from stages.backends.kernels.rfft_tables import factors_in_order, first_places
from stages.backends.kernels.tir.block import Function
from stages.backends.targets.spec import Target
from stages.ir.arrays import Array
from stages.ir.graph import LayerView
from stages.support.lazy import np

LEAST_NUMBERS = 16  # of a complex FFT


def frames_of(shape: tuple[int, ...]) -> int:
    """Return the number of frames of a tensor of this shape."""
    from math import prod

    return prod(shape[:-1])


class FrameKernel(Kernel):
    """A call of a C function on all frames.

    function      the C function
    instructions  per element of the input
    """

    sources = ("signal.c",)
    calls = True
    function: ClassVar[str]
    instructions: ClassVar[float]

    def alignment(self, target: Target) -> int:
        """Return the alignment of a frame in bytes."""
        return 4

    def integers(self, view: LayerView) -> Sequence[int]:
        """Return the integer arguments after the buffers: frames and elements per frame."""
        return (frames_of(view.inputs[0].shape), view.inputs[0].shape[-1])

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        """Return why frames are not aligned for loads of registers; '' if they are."""
        x, alignment = view.inputs[0], self.alignment(target)
        if frames_of(x.shape) > 1 and x.bytes // frames_of(x.shape) % alignment:
            return f"frames of {x.bytes // frames_of(x.shape)} bytes; of several, each needs a multiple of {alignment}"
        return ""

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        return {}

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        return self.instructions * view.inputs[0].elements + 30

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        return frames_call(view, self.function, self.pack_for(view, params, target), self.integers(view))


class Window16(FrameKernel):
    """Products with a window whose weights are at most 1: they fit int16.

    `fraction` are the fractional bits of the packed weights. With 15, weights of 1 must be contiguous: the C
    function copies their samples.
    """

    ops: ClassVar[frozenset[str]] = frozenset({"signal_window"})
    fraction: ClassVar[int]

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        weights, one = view.constant("weights").astype(int), 1 << view.op.shift
        if view.op.shift > self.fraction:
            return f"a shift of {view.op.shift}; this kernel is for at most {self.fraction}"
        if weights.max() > one or weights.min() <= -one:
            return "weights beyond 1"
        first, last = _ones(view)
        if self.fraction == 15 and not (weights[first:last] == one).all():
            return "weights of 1 that are not contiguous"
        return super().why_not_layer(view, target)

    def pack(self, view: LayerView, params: Any) -> Mapping[str, Array]:
        weights = view.constant("weights").astype(np.int32) << (self.fraction - view.op.shift)
        return {"weights": np.minimum(weights, (1 << 15) - 1).astype(np.int16)}

    def integers(self, view: LayerView) -> Sequence[int]:
        ones = _ones(view) if self.fraction == 15 else ()
        return (*super().integers(view), *ones)


def _ones(view: LayerView) -> tuple[int, int]:
    """Return start and end of the weights of 1, (0, 0) if there are none."""
    at = np.flatnonzero(view.constant("weights") == 1 << view.op.shift)
    return (int(at[0]), int(at[-1]) + 1) if at.size else (0, 0)


class ScaleBits16(FrameKernel):
    """Left shift that uses all bits of a frame."""

    ops: ClassVar[frozenset[str]] = frozenset({"signal_scale_bits"})

    def integers(self, view: LayerView) -> Sequence[int]:
        """Return frames, samples per frame, and whether -2^15 is ignored."""
        return (*super().integers(view), int(view.op.ignores_lowest))


class ScaleUp16(FrameKernel):
    """A frame shifted left."""

    ops: ClassVar[frozenset[str]] = frozenset({"signal_scale_up"})

    def overlays(self, view: LayerView) -> bool:
        return True


class Energy16(FrameKernel):
    """Squared magnitudes."""

    ops: ClassVar[frozenset[str]] = frozenset({"signal_energy"})

    def integers(self, view: LayerView) -> Sequence[int]:
        """Return frames, bins per frame, and start and end of the computed bins."""
        return (frames_of(view.inputs[0].shape), view.outputs[0].shape[-1], view.op.start, view.op.end)


class Rfft16(FrameKernel):
    """FFTs of a power of two."""

    ops: ClassVar[frozenset[str]] = frozenset({"signal_rfft"})
    sources = ("rfft.c",)
    per_number: ClassVar[float]

    @abstractmethod
    def unit(self, target: Target) -> int:
        """Return the unit: a frame shorter than the FFT is read in place if it is a multiple."""

    def why_not_layer(self, view: LayerView, target: Target) -> str:
        numbers = view.op.length // 2
        if view.inputs[0].dtype != "int16":
            return f"{view.inputs[0].dtype}; this kernel is for int16"
        if numbers & (numbers - 1) or numbers < LEAST_NUMBERS:
            return f"a length of {view.op.length}; this kernel is for powers of two from {2 * LEAST_NUMBERS} on"
        return super().why_not_layer(view, target)

    def padded(self, view: LayerView, target: Target) -> bool:
        """Return whether the kernel pads a copy of each frame with zeros."""
        size, length = view.inputs[0].shape[-1], view.op.length
        is_power_of_four = (length // 2).bit_length() % 2 == 1
        in_place = is_power_of_four and 4 * size >= 3 * length and size % self.unit(target) == 0
        return bool(size != length and not in_place)

    def integers(self, view: LayerView) -> Sequence[int]:
        """Return frames, samples of a frame and complex numbers of the FFT."""
        return (*super().integers(view), view.op.length // 2)

    def cost(self, view: LayerView, params: Any, target: Target) -> float:
        """Return `per_number` instructions per complex number and radix-4 stage."""
        from math import log

        numbers = view.op.length // 2
        return frames_of(view.inputs[0].shape) * numbers * self.per_number * (log(numbers, 4) + 1) + 100

    def scratch(self, view: LayerView, target: Target) -> int:
        """Return the size of the scratch buffer in complex numbers; 0: the function uses y instead."""
        return view.op.length // 2 if self.padded(view, target) else 0

    def lower(self, view: LayerView, params: Any, target: Target) -> Lowering:
        constants = self.pack_for(view, params, target)
        return rfft_call(view, self.function, constants, self.scratch(view, target), self.integers(view))


class RegisterRfft(Rfft16):
    """FFTs in general registers (include/rfft16_image.h), of one or two complex numbers each."""

    @abstractmethod
    def lanes(self, target: Target) -> int:
        """Return the complex numbers of a register."""

    def unit(self, target: Target) -> int:
        return 2 * self.lanes(target)

    def pack_for(self, view: LayerView, params: Any, target: Target) -> Mapping[str, Array]:
        numbers = view.op.length // 2
        return {"places": first_places(numbers), "factors": factors_in_order(numbers, self.lanes(target))}


def frames_call(view: LayerView, function: str, constants: Mapping[str, Array], integers: Sequence[int]) -> Lowering:
    """Return the call of `function` on inputs, constants, the output and integers."""
    return _call(view, function, constants, integers, scratch=None)


def rfft_call(
    view: LayerView, function: str, constants: Mapping[str, Array], scratch: int, integers: Sequence[int]
) -> Lowering:
    """Return `frames_call` with `scratch` complex numbers after the output; 0: in the output."""
    return _call(view, function, constants, integers, scratch)


def _call(
    view: LayerView, function: str, constants: Mapping[str, Array], integers: Sequence[int], scratch: int | None
) -> Lowering:
    out = view.outputs[0]
    with Function(view.op.op) as f:
        inputs = [(f.input(number, (x.elements,), x.dtype), "r") for number, x in enumerate(view.inputs)]
        packed = [(f.constant(key, array.shape, str(array.dtype)), "r") for key, array in constants.items()]
        y = (f.output(0, (out.elements,), out.dtype), "w")
        behind = () if scratch is None else ((f.scratch("numbers", (scratch,), "uint32"), "rw") if scratch else y,)
        f.call(function, *inputs, *packed, y, *behind, *integers)
    return f.lowering()
