"""Calls of C functions on frames of samples."""

from collections.abc import Mapping, Sequence

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Function
from stages.ir.arrays import Array
from stages.ir.graph import LayerView


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
