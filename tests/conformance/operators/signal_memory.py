"""Cases of TFLM's signal operators with state."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from stages.ir.graph import LayerView
from stages.ir.operators.signal_memory import Delay, OverlapAdd, framer_layers, stacker_layers
from tests.conformance.case import Case, Inputs, drawn_inputs
from tests.conformance.draw import Draw, image, view

OPS = (
    "signal_framer",
    "signal_framer_valid",
    "signal_overlap_add",
    "signal_delay",
    "signal_stacker",
    "signal_stacker_valid",
)
BITS = 0


class Remembering(Case):
    """A case whose counts are those of a run: up to the frames that a framer leaves unset, or the rows of a stack."""

    @cached_property
    def states(self) -> list[Inputs]:
        op, rng = self.view.op, np.random.default_rng(len(self.inputs))
        most = op.unset if hasattr(op, "unset") else getattr(op, "rows", 0)
        return [
            tuple(
                rng.integers(0, most + 1, 1).astype(np.int32) if t.dtype == "int32" else state
                for t, state in zip(self.view.states, states, strict=True)
            )
            for states in super().states
        ]


def framer(streams: tuple[int, ...], frames: int, size: int, step: int, *, prefill: bool, valid: bool) -> LayerView:
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    first, second = framer_layers(options, frames * step)
    x = image("x", (*streams, frames * step), "int16")
    count = [image("count", (1,), "int32")] if first.unset else []
    if valid:
        return view(second, [x], image("y", (), "bool"), state=tuple(count))
    kept = [image("kept", (int(np.prod(streams)), first.kept), "int16")] if first.kept else []
    return view(first, [x], image("y", (*streams, frames, size), "int16"), state=(*kept, *count))


def overlap_add(streams: tuple[int, ...], frames: int, size: int, step: int, dtype: str) -> LayerView:
    x, y = image("x", (*streams, frames, size), dtype), image("y", (*streams, frames * step), dtype)
    tail = (image("tail", (int(np.prod(streams)), size - step), dtype),) if size > step else ()
    return view(OverlapAdd(step=step), [x], y, state=tail)


def delay(streams: tuple[int, ...], samples: int, length: int) -> LayerView:
    kept = (image("kept", (int(np.prod(streams)), length), "int16"),) if length else ()
    shape = (*streams, samples)
    return view(Delay(length=length), [image("x", shape, "int16")], image("y", shape, "int16"), state=kept)


def stacker(count: tuple[int, ...], channels: int, left: int, right: int, step: int, *, valid: bool) -> LayerView:
    options = {"stacker_left_context": left, "stacker_right_context": right, "stacker_step": step}
    first, second = stacker_layers(options)
    x, available = image("x", (*count, channels), "int16"), image("available", (1,), "int32")
    if valid:
        return view(second, [x], image("y", count, "bool"), state=(available,))
    rows = (image("rows", (first.rows - 1, channels), "int16"),) if first.rows > 1 else ()
    return view(first, [x], image("y", (*count, first.rows * channels), "int16"), state=(*rows, available))


def drawn(draw: Draw) -> LayerView:
    streams = draw.choose((), (1,), (draw.integer(2, 3),))
    step, kind = draw.integer(1, 20), draw.integer(0, 3)
    size = step + draw.integer(0, 50)
    if kind == 0:
        prefill, valid = bool(draw.integer(0, 1)), bool(draw.integer(0, 1))
        return framer(streams, draw.integer(1, 4), size, step, prefill=prefill, valid=valid)
    if kind == 1:
        return overlap_add(streams, draw.integer(1, 4), size, step, draw.choose("int16", "float32"))
    if kind == 2:
        return delay(streams, size, draw.integer(0, 60))
    left, right = draw.integer(0, 3), draw.integer(0, 3)
    stride = draw.integer(1, left + right + 1)
    return stacker(draw.choose((), (4,)), size, left, right, stride, valid=bool(draw.integer(0, 1)))


def mandatory() -> Iterator[Case]:
    """Frames that overlap more and less than one step, and not; odd and even sizes; any counts."""
    layers: list[LayerView] = []
    for streams, frames, size, step in (
        ((), 1, 480, 160),
        ((1,), 1, 480, 320),
        ((2,), 3, 7, 7),
        ((), 4, 9, 2),
        ((3,), 2, 25, 10),
        ((), 1, 3, 5),
    ):
        for valid in (False, True):
            layers += [
                framer(streams, frames, size, step, prefill=p, valid=valid)
                for p in (False, True)
                if size >= step or not p
            ]
        layers += [overlap_add(streams, frames, size, step, dtype) for dtype in ("int16", "float32") if size >= step]
        layers += [delay(streams, size, length) for length in (0, step, size, 2 * size + 1)]
    for count, channels, left, right, step in (
        ((), 40, 2, 1, 1),
        ((4,), 5, 0, 2, 3),
        ((3,), 8, 1, 1, 2),
        ((), 4, 0, 0, 1),
    ):
        layers += [stacker(count, channels, left, right, step, valid=valid) for valid in (False, True)]
    for number, layer in enumerate(layers):
        runs = drawn_inputs(Draw(number), layer)
        if layer.inputs[0].dtype == "float32":
            runs = runs[:1]
        yield Remembering(f"{layer.op.op} {number}", ("shapes", "extremes"), layer, runs * 3)
