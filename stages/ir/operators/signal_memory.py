"""TFLM's signal operators with state: framer, overlap-add, delay and stacker.

Outputs that are not valid yet are 0 (TFLM: unset).
"""

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Literal

from stages.ir.layers import Array, LayerOp, LayerView
from stages.ir.naming import named
from stages.ir.operators.activations import same_shape
from stages.ir.operators.declaration import Tensors
from stages.ir.operators.operation import Operation, Refused, Shape, listed
from stages.ir.operators.signal_options import BOOLEAN, SIZE, frames_of, last_axis, options_of, output_types
from stages.ir.operators.signal_spectrum import FFT_TYPES, signal_operator
from stages.support.lazy import np

_MOST = (0, 1 << 20)  # samples or frames of an option
States = tuple["Array", list["Array"]]


class Framer(LayerOp):
    """First output of SignalFramer: overlapping frames.

    Axes before the last one are separate streams.
    Each step appends `step` samples to the `kept` samples; the first `size` are the frame. The first `unset` frames
    after a reset are 0.

    States: samples [streams, kept] if any are kept; frames so far, int32[1], at most `unset`, if that is not 0.
    """

    op: Literal["signal_framer"] = "signal_framer"
    any_type: ClassVar[bool] = True
    size: int
    step: int
    kept: int
    unset: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return the frames and the new state."""
        streams = inputs[0].reshape(-1, inputs[0].shape[-1])
        samples = np.concatenate([states[0], streams], -1) if self.kept else streams
        starts = range(0, streams.shape[-1], self.step)
        frames = np.stack([samples[:, start : start + self.size] for start in starts], 1)
        new_states = [samples[:, samples.shape[-1] - self.kept :]] if self.kept else []
        if self.unset:
            count = int(states[-1][0])
            frames[:, : max(self.unset - count, 0)] = 0
            new_states.append(np.array([min(count + len(starts), self.unset)], np.int32))
        return frames.reshape(view.outputs[0].shape), new_states


class FramerValid(LayerOp):
    """Second output of SignalFramer: whether all frames of this run are set.

    State: as the last state of Framer.
    """

    op: Literal["signal_framer_valid"] = "signal_framer_valid"
    alias: ClassVar[str] = "signal_framer"
    any_type: ClassVar[bool] = True
    frames: int
    unset: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return whether the frames are valid, and the new state."""
        count = int(states[0][0]) if self.unset else 0
        new_states = [np.array([min(count + self.frames, self.unset)], np.int32)] if self.unset else []
        return np.array(count >= self.unset), new_states


class OverlapAdd(LayerOp):
    """SignalOverlapAdd: the sum of frames that begin `step` samples apart.

    int16 saturates after each addition. Axes before the frames are separate streams. State: the tail of the sum,
    [streams, size - step], if there is one.
    """

    op: Literal["signal_overlap_add"] = "signal_overlap_add"
    any_type: ClassVar[bool] = True
    step: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return the samples and the new state."""
        (x,), size = inputs, inputs[0].shape[-1]
        frames = x.reshape(-1, *x.shape[-2:])
        total = np.zeros((frames.shape[0], size), np.int64 if x.dtype == np.int16 else np.float32)
        if size > self.step:
            total[:, : size - self.step] = states[0]
        parts = []
        for number in range(frames.shape[1]):
            total += frames[:, number]
            if x.dtype == np.int16:
                total = np.clip(total, -(1 << 15), (1 << 15) - 1)
            parts.append(total[:, : self.step].astype(x.dtype))
            total = np.concatenate([total[:, self.step :], np.zeros_like(total[:, : self.step])], -1)
        y = np.concatenate(parts, -1).reshape(view.outputs[0].shape)
        return y, [total[:, : size - self.step].astype(x.dtype)] if size > self.step else []


class Delay(LayerOp):
    """SignalDelay: the samples from `length` samples earlier.

    Axes before the last one are separate streams.

    State: the last samples, [streams, length], unless the length is 0.
    """

    op: Literal["signal_delay"] = "signal_delay"
    any_type: ClassVar[bool] = True
    length: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return the samples and the new state."""
        (x,) = inputs
        if not self.length:
            return x.copy(), []
        samples = np.concatenate([states[0], x.reshape(-1, x.shape[-1])], -1)
        return samples[:, : x.shape[-1]].reshape(x.shape), [samples[:, x.shape[-1] :]]


class Stacker(LayerOp):
    """First output of SignalStacker: the last `rows` rows joined, every `step` rows.

    Axes before the last are time.

    `left` copies of the first row precede it. Outputs between the steps, and before there are enough rows, are 0.

    States: the last rows, [rows - 1, channels], if any; int32[1], 0 before the first row, else 1 and the rows that were
    not stacked yet.
    """

    op: Literal["signal_stacker"] = "signal_stacker"
    any_type: ClassVar[bool] = True
    rows: int
    left: int
    step: int

    def valid(self, count: int) -> tuple[bool, int]:
        """Return whether the next row completes a stack, and the count after it."""
        available = (count - 1 if count else self.left) + 1
        is_valid = available >= self.rows
        return is_valid, available - self.step * is_valid + 1

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return the stacks and the new state."""
        count, channels = int(states[-1][0]), inputs[0].shape[-1]
        kept = states[0] if self.rows > 1 else np.zeros((0, channels), np.int16)
        stacks = []
        for row in inputs[0].reshape(-1, channels):
            kept = kept if count else np.repeat(row[None], self.rows - 1, 0)
            is_valid, count = self.valid(count)
            stack = np.concatenate([kept, row[None]])
            stacks.append(stack.reshape(-1) * np.int16(is_valid))
            kept = stack[1:]
        y = np.stack(stacks).reshape(view.outputs[0].shape)
        return y, [*([kept] if self.rows > 1 else []), np.array([count], np.int32)]


class StackerValid(LayerOp):
    """Second output of SignalStacker: whether each stack is set.

    State: as the last state of Stacker.
    """

    op: Literal["signal_stacker_valid"] = "signal_stacker_valid"
    alias: ClassVar[str] = "signal_stacker"
    any_type: ClassVar[bool] = True
    rows: int
    left: int
    step: int

    def advance(self, view: LayerView, inputs: Sequence[Array], states: Sequence[Array]) -> States:
        """Return whether the stacks are valid, and the new state."""
        stacker, count, results = Stacker(rows=self.rows, left=self.left, step=self.step), int(states[0][0]), []
        for _ in range(prod(inputs[0].shape[:-1])):
            is_valid, count = stacker.valid(count)
            results.append(is_valid)
        return np.array(results).reshape(view.outputs[0].shape), [np.array([count], np.int32)]


_FRAMER = {"frame_size": SIZE, "frame_step": SIZE, "prefill": BOOLEAN}


def _framed(operation: Operation) -> list[Shape]:
    options, count = options_of(operation, _FRAMER), last_axis(operation)
    size, step = options["frame_size"], options["frame_step"]
    if count % step:
        raise Refused(f"reads {count} samples of {named(operation.input(0))}, not a multiple of its frame_step {step}")
    if options["prefill"] and size < step:
        raise Refused(f"has frame_size = {size}; with prefill it must be at least frame_step = {step}")
    return [(*frames_of(operation), count // step, size), ()]


def framer_layers(options: dict[str, int], count: int) -> tuple[Framer, FramerValid]:
    """Return the layers of SignalFramer for `count` samples in a run."""
    size, step = int(options["frame_size"]), int(options["frame_step"])
    steps = -(-size // step)
    kept, unset = (size - step, 0) if options["prefill"] else ((steps - 1) * step, steps - 1)
    return Framer(size=size, step=step, kept=kept, unset=unset), FramerValid(frames=count // step, unset=unset)


def _overlapped(operation: Operation) -> list[Shape]:
    x = operation.input(0)
    options = options_of(operation, {"T": (0, 127), "frame_step": SIZE})
    if len(x.shape) < 2:
        raise Refused(f"reads {listed(x.shape)} of {named(x)}; it takes frames along the axis before the last one")
    if FFT_TYPES.get(options["T"]) != x.dtype:
        raise Refused(f"has the option T = {options['T']}, but reads {x.dtype}; T is 0 for float32, 7 for int16")
    if options["frame_step"] > x.shape[-1]:
        raise Refused(f"has frame_step = {options['frame_step']}, more than the {x.shape[-1]} samples of a frame")
    return [(*x.shape[:-2], x.shape[-2] * options["frame_step"])]


def _delayed(operation: Operation) -> None:
    options_of(operation, {"delay_length": _MOST})
    last_axis(operation)
    output_types(operation, "int16")


_STACKER = {"num_channels": SIZE, "stacker_left_context": _MOST, "stacker_right_context": _MOST, "stacker_step": SIZE}


def _stacked(operation: Operation) -> list[Shape]:
    options, channels = options_of(operation, _STACKER), last_axis(operation)
    if channels != options["num_channels"]:
        raise Refused(f"has num_channels = {options['num_channels']}, but reads rows of {channels}")
    stacker = stacker_layers(options)[0]
    if stacker.step > stacker.rows:
        raise Refused(f"has stacker_step = {stacker.step}, more than the {stacker.rows} rows of a stack")
    return [(*frames_of(operation), stacker.rows * channels), frames_of(operation)]


def stacker_layers(options: dict[str, int]) -> tuple[Stacker, StackerValid]:
    """Return the layers of SignalStacker."""
    left, right, step = (options[f"stacker_{name}"] for name in ("left_context", "right_context", "step"))
    sizes: dict[str, Any] = {"rows": left + right + 1, "left": left, "step": step}
    return Stacker(**sizes), StackerValid(**sizes)


_INT16 = ("int16",)
OPERATORS = (
    signal_operator(
        "Framer",
        _framed,
        Tensors((1, 1), (2, 2), types=_INT16, results=("int16", "bool")),
        (Framer, FramerValid),
        lambda operation: output_types(operation, "int16", "bool"),
        "keeps samples; invalid frames are 0",
    ),
    signal_operator(
        "OverlapAdd",
        _overlapped,
        Tensors(types=("int16", "float32"), results=("int16", "float32")),
        (OverlapAdd,),
        lambda operation: output_types(operation, operation.input(0).dtype),
        "keeps the tail of the sum",
    ),
    signal_operator("Delay", same_shape, Tensors(types=_INT16, results=_INT16), (Delay,), _delayed, "keeps samples"),
    signal_operator(
        "Stacker",
        _stacked,
        Tensors((1, 1), (2, 2), types=_INT16, results=("int16", "bool")),
        (Stacker, StackerValid),
        lambda operation: output_types(operation, "int16", "bool"),
        "keeps rows; invalid stacks are 0",
    ),
)
