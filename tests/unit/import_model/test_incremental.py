"""Networks over a window of time that take new frames only: the same bytes as the whole window, in less work."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.base import StageError
from stages.import_model.incremental import Incremental, incremental
from stages.import_model.normalize import normalized
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.complexity import macs
from stages.ir.models.tflite_reader import read
from stages.ir.operators.variables import Slide
from stages.ir.reference.integer import run_graph, run_layer
from stages.ir.reference.partitions import reference_of
from stages.lower.simplify.windows_as_state import with_windows_as_state
from tests.support.integer import integer_graph
from tests.support.variables import frames as network_with_state

IN, MID, OUT = (0.05, 3), (0.1, -20), (0.05, -7)


class Layers:
    """Layers with random weights; `axis` is the axis of time."""

    def __init__(self, seed: int, dtype: str = "int8", axis: int = 1) -> None:
        self.rng, self.dtype, self.axis, self.b = np.random.default_rng(seed), dtype, axis, ModelBuilder()
        self.mid = MID if dtype == "int8" else None

    def input(self, shape: tuple[int, ...]) -> Tensor:
        return self.b.input("x", shape, self.dtype, *(IN if self.dtype == "int8" else ()))

    def weights(self, shape: tuple[int, ...]) -> tuple[np.ndarray, float | None]:
        numbers = self.rng.integers(-127, 128, shape)
        scale = 1.0 / (40 * np.sqrt(np.prod(shape[1:3])) * 2)
        return (
            (numbers.astype(np.int8), scale) if self.dtype == "int8" else ((numbers * scale).astype(np.float32), None)
        )

    def bias(self, channels: int) -> np.ndarray:
        numbers = self.rng.integers(-400, 400, channels)
        return numbers.astype(np.int32) if self.dtype == "int8" else (numbers / 400).astype(np.float32)

    def pair(self, time: int, other: int = 1) -> tuple[int, int]:
        return (time, other) if self.axis == 1 else (other, time)

    def conv(
        self, x: Tensor, taps: int, filters: int = 3, other: int = 1, stride: int = 1, **options: object
    ) -> Tensor:
        dilation = self.pair(int(str(options.pop("dilation", 1))))
        weights, scale = self.weights((filters, *self.pair(taps, min(other, x.shape[3 - self.axis])), x.shape[3]))
        options = {"stride": self.pair(stride), "dilation": dilation, "out": self.mid, **options}
        return self.b.conv2d(x, weights, self.bias(filters), weight_scale=scale, **options)  # type: ignore[arg-type]

    def depthwise(self, x: Tensor, taps: int, other: int = 1, **options: object) -> Tensor:
        weights, scale = self.weights((1, *self.pair(taps, min(other, x.shape[3 - self.axis])), x.shape[3]))
        return self.b.depthwise_conv2d(x, weights, self.bias(x.shape[3]), weight_scale=scale, out=self.mid, **options)  # type: ignore[arg-type]

    def connected(self, x: Tensor, units: int = 3) -> Tensor:
        flat = self.b.reshape(x, (1, int(np.prod(x.shape))))
        weights, scale = self.weights((units, flat.shape[1]))
        out = OUT if self.dtype == "int8" else None
        return self.b.fully_connected(flat, weights, weight_scale=None if scale is None else scale / 4, out=out)

    def crop(self, x: Tensor, begin: int, rows: int) -> Tensor:
        starts, ends = [0] * 4, [*x.shape]
        starts[self.axis], ends[self.axis] = begin, begin + rows
        return self.b.strided_slice(x, starts, ends)

    def padded(self, x: Tensor, before: int, after: int) -> Tensor:
        pads = [(0, 0)] * 4
        pads[self.axis] = before, after
        return self.b.pad(x, pads)

    def file(self, *outputs: Tensor) -> bytes:
        self.b.output(*outputs)
        return self.b.build()


def rewritten(data: bytes, frames: int | None = None, axis: int | None = None) -> Incremental:
    return incremental(data, read(data), "net.tflite", frames=frames, axis=axis)


def assert_same(data: bytes, new: Incremental, runs: int = 0) -> None:
    """Both networks on a stream of frames, from the first run (a window of zeros) until the window was full twice."""
    whole, ours, checker = (reference_of(file) for file in (data, new.data, new.whole))
    (source,), (port,) = whole.inputs, ours.inputs
    zero = int(source.zero_point[0]) if source.zero_point.size else 0
    window, rng, different = np.full(source.shape, zero, source.dtype), np.random.default_rng(1), set()
    for run in range(runs or 2 * new.window // new.frames + 2):
        numbers = rng.integers(-128, 128, port.shape)
        frames = numbers.astype(np.int8) if source.dtype == "int8" else (numbers / 64).astype(np.float32)
        joined = np.concatenate([window, frames], new.axis)
        window = np.take(joined, range(frames.shape[new.axis], joined.shape[new.axis]), new.axis)
        outputs = (whole.run([window]), ours.run([frames]), checker.run([frames]))
        for expected, actual, checked in zip(*outputs, strict=True):
            assert expected.tobytes() == actual.tobytes() == checked.tobytes(), f"run {run}"
            different.add(expected.tobytes())
    assert len(different) > 2, "the test's network does not depend on its input"


def network(seed: int) -> bytes:
    """A random network over time, of one to five layers, branches and an end."""
    rng = np.random.default_rng(seed)
    net = Layers(seed, ("int8", "int8", "float32")[seed % 3], axis=2 if seed % 5 == 4 else 1)
    time, other, channels = int(rng.integers(12, 34)), int(rng.choice([1, 1, 4, 5])), int(rng.integers(1, 5))
    x = net.input((1, *net.pair(time, other), channels))
    may_pad = rng.random() < 0.5

    def padding() -> str:
        return "same" if may_pad and rng.random() < 0.5 else "valid"

    for _ in range(int(rng.integers(1, 6))):
        rows = x.shape[net.axis]
        taps = int(rng.integers(1, max(2, min(5, rows // 3))))
        stride, wide = (2 if rng.random() < 0.25 else 1), int(rng.integers(1, 4))
        match int(rng.integers(0, 9)):
            case 0 | 1:
                dilation = int(rng.integers(1, 3)) if stride == 1 else 1
                x = net.conv(x, taps, int(rng.integers(1, 5)), wide, stride, dilation=dilation, padding=padding())
            case 2:
                x = net.depthwise(x, taps, wide, stride=net.pair(stride, stride), padding=padding())
            case 3:
                pool = net.b.max_pool2d if rng.random() < 0.5 else net.b.avg_pool2d
                x = pool(x, net.pair(taps), net.pair(int(rng.integers(1, taps + 1))), padding=padding())
            case 4:
                x = net.b.relu(x)
            case 5 if may_pad:
                x = net.conv(net.padded(x, taps - 1, 0), taps, padding="valid")
            case 6 if rows > taps:
                y = net.conv(x, taps, x.shape[3], padding="valid")
                cropped = net.crop(x, int(rng.integers(0, taps)), y.shape[net.axis])
                x = net.b.add(y, cropped, out=net.mid)
            case 7:
                branches = [net.conv(x, size, 2, padding="same" if may_pad else "valid") for size in (1, 1 + may_pad)]
                x = net.b.concatenation(branches, 3)
            case 8:
                x = net.b.transpose(x, (0, 2, 1, 3))
                net.axis = 3 - net.axis
    match int(rng.integers(0, 4)):
        case 0:
            return net.file(net.b.mean(x, (1, 2)))
        case 1:
            return net.file(net.b.softmax(net.connected(x)))
        case 2:
            return net.file(net.connected(net.crop(x, x.shape[net.axis] - 1, 1)))
        case _:
            return net.file(x, net.b.avg_pool2d(x, (x.shape[1], x.shape[2])))


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_every_output_equals_that_of_the_whole_window(seed: int) -> None:
    data = network(seed)
    try:
        new = rewritten(data, axis=2 if seed % 5 == 4 else 1)
    except StageError as error:
        assert "saves no work" in error.message or "all of it would be new" in error.message
        return
    assert_same(data, new)


def wake_word(net: Layers) -> bytes:
    """VALID in time: a depthwise and a dense convolution, then one over all rows that are left."""
    x = net.depthwise(net.input((1, 20, 1, 4)), 3, padding="valid")
    x = net.conv(x, 1, 8)
    x = net.depthwise(x, 18, padding="valid")
    return net.file(net.b.softmax(net.connected(x)))


def strided(net: Layers) -> bytes:
    """SAME and stride 2: rows at both ends see padding."""
    x = net.conv(net.input((1, 49, 10, 1)), 10, 6, other=4, stride=2, padding="same")
    return net.file(net.b.softmax(net.connected(net.conv(x, 3, 6, padding="same"))))


def flat(net: Layers) -> bytes:
    """The window is flat: 20 frames of 4 channels."""
    x = net.b.reshape(net.input((1, 80)), (1, 20, 4, 1))
    return net.file(net.connected(net.conv(x, 3, 4, other=2, padding="valid")))


@pytest.mark.parametrize(
    ("build", "frames", "shape", "states", "products"),
    [
        # Each layer computes one row; a state has the rows of its window but the new one.
        (wake_word, None, (1, 1, 1, 4), [(1, 2, 1, 4), (1, 17, 1, 8)], 12 + 32 + 144 + 24),
        (wake_word, 3, (1, 3, 1, 4), [(1, 2, 1, 4), (1, 15, 1, 8)], 36 + 96 + 144 + 24),
        # 2 + 3 of 25 rows see padding, then 3 + 4: 6 and 8 rows are computed.
        (strided, None, (1, 2, 10, 1), [(1, 47, 10, 1), (1, 19, 10, 6), (1, 17 * 60)], 6 * 2400 + 8 * 1080 + 4500),
        (flat, None, (1, 4), [(1, 2, 4, 1), (1, 17 * 12)], 72 + 648),
    ],
)
def test_a_run_takes_new_frames_and_keeps_the_rows_of_each_window(
    build: Callable[[Layers], bytes], frames: int | None, shape: tuple[int, ...], states: list[object], products: int
) -> None:
    """Also in integers as the firmware computes them, with its own state."""
    data = build(Layers(7))
    new = rewritten(data, frames)
    assert_same(data, new)
    assert [new.info.tensors[index].shape for index in new.info.inputs] == [shape]
    assert [tensor.shape for tensor in new.info.tensors if tensor.variable] == states
    assert macs(new.info) == products
    graph, reference, kept = integer_graph(new.data), reference_of(new.data), None
    for run in range(3):
        inputs = [np.random.default_rng(run).integers(-128, 128, shape).astype(np.int8)]
        values = run_graph(graph, inputs, None, kept)
        kept = {name: values[name] for name, tensor in graph.tensors.items() if tensor.state}
        (expected,) = reference.run(inputs)
        assert np.array_equal(values[graph.outputs[0]].reshape(expected.shape), expected)


def two_inputs(net: Layers) -> bytes:
    x, y = net.b.input("a", (1, 20, 1, 4), "int8", *IN), net.b.input("b", (1, 20, 1, 4), "int8", *IN)
    return net.file(net.b.add(x, y))


def padded_everywhere(net: Layers) -> bytes:
    return net.file(net.connected(net.conv(net.input((1, 8, 1, 2)), 9, padding="same")))


@pytest.mark.parametrize(
    ("build", "frames", "axis", "message"),
    [
        (two_inputs, None, None, r"has 2 inputs \('a', 'b'\)"),
        (lambda net: net.file(net.connected(net.input((1, 8)))), None, None,
         r"shape \[1, 8\], which has no axis of time"),
        (lambda net: normalized(network_with_state("int8"), "net").data, None, None,
         "already keeps state between runs"),
        (padded_everywhere, None, None, r"operator 0 \(CONV_2D\) 'conv2d' .*8 of its 8 rows depend on padding"),
        (strided, 3, None, "frames is 3, .* need a multiple or a divisor of 2"),
        (strided, 1, None, "saves no work .*has one row per 2 frames, which does not divide 1"),
        (strided, 50, None, "frames is 50, but the window of net.tflite has 49"),
        (wake_word, None, 4, r"shape \[1, 20, 1, 4\], which has no axis 4"),
        (wake_word, None, 2, "with 1 frame on axis 2"),
        (wake_word, None, 3, "saves no work"),
    ],
)  # fmt: skip
def test_what_cannot_be_incremental_is_an_error(
    build: Callable[[Layers], bytes], frames: int | None, axis: int | None, message: str
) -> None:
    with pytest.raises(StageError, match=f"(?s){message}") as error:
        rewritten(build(Layers(1)), frames, axis)
    assert len(error.value.message.splitlines()) < 4
    assert error.value.hint


def test_windows_slide_from_rows_that_differ_by_channel() -> None:
    """Alone, as kernels are counted, a slide moves the rows of a window of zeros; layers before it made them."""
    graph, _ = with_windows_as_state(integer_graph(rewritten(wake_word(Layers(7))).data))
    slides = [layer for layer in graph.layers if isinstance(layer.op, Slide)]
    assert len(slides) == 2
    assert max(len(np.unique(graph.initial_state(layer.state[0]))) for layer in slides) > 1
    for layer in slides:
        assert isinstance(layer.op, Slide)
        begin = graph.initial_state(layer.state[0])
        rows = np.take(begin, range(layer.op.source, layer.op.source + layer.op.rows), layer.op.axis)
        assert np.array_equal(run_layer(graph.view(layer), []), rows)
