"""Calls of the C functions of signal operators."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.stateful import StatefulFunction
from stages.ir.arrays import Array
from stages.ir.graph import LayerView

# Integer arguments of the functions, behind the buffers. Buffers are inputs, constants, states, outputs, scratch.
_FFT = {"int16": "s16", "int32": "s32", "float32": "f32"}


def _frames(view: LayerView) -> list[int]:
    return [prod(view.inputs[0].shape[:-1]), view.inputs[0].shape[-1]]


def _bins(view: LayerView) -> list[int]:
    bins = view.outputs[0].shape[-1]
    return [prod(view.inputs[0].shape[:-1]), bins, view.op.start, view.op.end]


def _subtraction(view: LayerView) -> list[int]:
    op = view.op
    return [view.inputs[0].elements, op.smoothing_bits, op.bits, op.least]


_INTEGERS: Mapping[str, Callable[[LayerView], list[int]]] = {
    "signal_window": lambda view: [*_frames(view), view.op.shift],
    "signal_scale_bits": lambda view: [*_frames(view), int(view.op.ignores_lowest)],
    "signal_scale_up": _frames,
    "signal_energy": _bins,
    "signal_square_root": _frames,
    "signal_subtract_noise": _subtraction,
    "signal_pcan": lambda view: [view.inputs[0].elements, view.op.snr_shift],
    "signal_log": lambda view: [view.inputs[0].elements, view.op.scale, view.op.correction_bits],
}


def _function(view: LayerView, constants: Mapping[str, Array], prefix: str) -> str:
    name = view.op.op
    if name in ("signal_rfft", "signal_irfft"):
        return f"{prefix}_{name.removeprefix('signal_')}_{_FFT[view.inputs[0].dtype]}"
    is_signed = name == "signal_filter_bank" and constants["weights"].min() < 0
    return f"{prefix}_{name}_signed" if is_signed else f"{prefix}_{name}"


def called(view: LayerView, constants: Mapping[str, Array], prefix: str = "fl") -> Lowering:
    """Return the call of the layer's function: inputs, constants, states, outputs, integers.

    The function's name begins with `prefix`.
    """
    with StatefulFunction(view.op.op) as f:
        inputs = [f.input(number, (x.elements,), x.dtype) for number, x in enumerate(view.inputs)]
        packed = {key: f.constant(key, array.shape, str(array.dtype)) for key, array in constants.items()}
        states = [f.state(number, (tensor.elements,), tensor.dtype) for number, tensor in enumerate(view.states)]
        y = f.output(0, (view.outputs[0].elements,), view.outputs[0].dtype)
        f.call(_function(view, constants, prefix), *_arguments(f, view, inputs, packed, states, y))
    return f.lowering()


def remembered(view: LayerView, constants: Mapping[str, Array]) -> Lowering:
    """Return the call for a layer with up to two states: samples and a count.

    For a missing state the function gets the output and does not touch it.
    """
    (x,), y, name = view.inputs, view.outputs[0], view.op.op
    has_samples, has_count = (any((t.dtype == "int32") == is_count for t in view.states) for is_count in (False, True))
    with StatefulFunction(name) as f:
        read = f.input(0, (x.elements,), x.dtype)
        ((key, array),) = constants.items()
        parameters = f.constant(key, array.shape, str(array.dtype))
        states = [f.state(number, (tensor.elements,), tensor.dtype) for number, tensor in enumerate(view.states)]
        written = f.output(0, (y.elements,), y.dtype)
        samples = states[0] if has_samples else written
        count = states[-1] if has_count else written
        if name.endswith("_valid"):
            f.call(f"fl_{name}", (count, "rw"), (written, "w"), (parameters, "r"))
        elif name == "signal_overlap_add":
            arguments = ((read, "r"), (samples, "rw"), (written, "w"), (parameters, "r"))
            f.call(f"fl_{name}_{_FFT[x.dtype]}", *arguments)
        else:
            function = "fl_signal_stacker" if name == "signal_stacker" else "fl_signal_framer"
            f.call(function, (read, "r"), (samples, "rw"), (count, "rw"), (written, "w"), (parameters, "r"))
    return f.lowering()


def _arguments(f: Any, view: LayerView, inputs: Any, packed: Mapping[str, Any], states: Any, y: Any) -> list[Any]:
    """Return the arguments in the order of the C function."""
    read = [(buffer, "r") for buffer in inputs]
    constants = {key: (buffer, "r") for key, buffer in packed.items()}
    if view.op.op in ("signal_rfft", "signal_irfft"):
        *tables, parameters = constants.values()
        scratch = []
        if view.op.op == "signal_irfft":
            scratch = [(f.scratch("inner", (view.op.length,), view.inputs[0].dtype), "rw")]
        return [*read, (y, "w"), *tables, *scratch, parameters]
    behind = [constants.pop(key) for key in ("bank", "noise") if key in constants]
    kept = [(buffer, "rw") for buffer in states]
    integers = _INTEGERS[view.op.op](view) if view.op.op in _INTEGERS else []
    return [*read, *constants.values(), *kept, (y, "w"), *behind, *integers]
