"""Networks of which many channels are constant, read by no weight, or repeated. The same seed gives the same file."""

import numpy as np

from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.lower.simplify.coupled_channels import coupled_channels
from stages.lower.simplify.narrow import Narrowing
from stages.lower.simplify.value_ranges import value_ranges

QUANT = (0.05, 3)
STEPS = 10


class Drawn:
    """A network in which about half of the filters are zero, so that their outputs are constant, and some unread.

    With `repeated` they repeat others instead, with what is added to them.
    """

    def __init__(self, seed: int, dtype: str = "int8", *, repeated: bool = False) -> None:
        self.repeated = repeated
        self.rng, self.b, self.dtype = np.random.default_rng(seed), ModelBuilder(), dtype
        self.zero = 0 if dtype == "int8" else 128
        channels = int(self.rng.choice([3, 4, 8]))
        self.pool = [self.b.input("x", (1, *self.rng.integers(3, 8, 2).tolist(), channels), dtype, *QUANT)]

    def build(self) -> bytes:
        """`STEPS` operators on images, then flat features and two classes."""
        steps = [
            self.convolution, self.convolution, self.depthwise, self.depthwise, self.relu, self.tanh, self.add,
            self.mul, self.pool2d, self.join, self.pad, self.slice, self.requantize,
        ]  # fmt: skip
        x = self.convolution(self.pool[0], "t0")
        for count in range(STEPS):
            self.pool.append(x)
            x = steps[int(self.rng.integers(len(steps)))](x, f"t{count + 1}")
        ends = [self.connected(self.flat(x, "flat"), "y")]
        if self.rng.integers(3) == 0:
            ends.append(self.pool[int(self.rng.integers(1, len(self.pool)))])
        self.b.output(*ends)
        return self.b.build()

    def _filters(self, shape: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
        values = self.rng.integers(-127, 128, shape)
        if self.repeated:
            return self._twins(shape, axis)
        dead = self.rng.random(shape[axis]) < 0.5
        np.moveaxis(values, axis, 0)[dead] = 0
        if axis == 0 and len(shape) > 1:
            values[..., self.rng.random(shape[-1]) < 0.2] = 0  # channels that nobody reads
        bias = self.rng.integers(-900, 900, shape[axis]) * (self.rng.random(shape[axis]) < 0.7)
        return (values + self.zero).clip(0 if self.zero else -128, 255 if self.zero else 127), bias.astype(np.int32)

    def _twins(self, shape: tuple[int, ...], axis: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights of half the range, so that some sums are in it."""
        values = np.moveaxis(self.rng.integers(-63, 64, shape), axis, 0)
        bias = self.rng.integers(-900, 900, shape[axis])
        like = np.minimum(np.arange(shape[axis]), self.rng.integers(0, 4, shape[axis]))
        made = np.moveaxis(values[like], 0, axis)
        if self.rng.integers(4) == 0:
            made[(0,) * made.ndim] = 120  # with which few others are in range
        return (made + self.zero).astype(np.int64), bias[like].astype(np.int32)

    def _window(self) -> dict[str, object]:
        return {
            "padding": str(self.rng.choice(["same", "valid"])),
            "stride": (int(self.rng.integers(1, 3)),) * 2,
            "out": (0.05, int(self.rng.integers(-3, 4)) + self.zero),
            "activation": str(self.rng.choice(["none", "relu"])),
        }

    def convolution(self, x: Tensor, name: str) -> Tensor:
        size = int(self.rng.choice([1, min(3, x.shape[1], x.shape[2])]))
        values, bias = self._filters((int(self.rng.integers(2, 9)), size, size, x.shape[3]), 0)
        scale = {"weight_scale": 0.01, "weight_zero_point": self.zero}
        return self.b.conv2d(x, values.astype(self.dtype), bias, **scale, **self._window(), name=name)  # type: ignore[arg-type]

    def depthwise(self, x: Tensor, name: str) -> Tensor:
        size = min(3, x.shape[1], x.shape[2])
        values, bias = self._filters((1, size, size, x.shape[3] * int(self.rng.integers(1, 3))), 3)
        scale = {"weight_scale": 0.02, "weight_zero_point": self.zero}
        return self.b.depthwise_conv2d(x, values.astype(self.dtype), bias, **scale, **self._window(), name=name)  # type: ignore[arg-type]

    def relu(self, x: Tensor, name: str) -> Tensor:
        return self.b.relu(x, name=name)

    def tanh(self, x: Tensor, name: str) -> Tensor:
        return self.b.tanh(x, name=name)

    def _other(self, x: Tensor) -> Tensor:
        return next((y for y in self.pool[1:] if y.shape == x.shape), x)

    def add(self, x: Tensor, name: str) -> Tensor:
        made = self.b.add if self.rng.integers(2) else self.b.sub
        return made(x, self._other(x), out=(0.1, self.zero - 4), name=name)

    def mul(self, x: Tensor, name: str) -> Tensor:
        return self.b.mul(x, self._other(x), out=(0.03, self.zero + 4), name=name)

    def pool2d(self, x: Tensor, name: str) -> Tensor:
        made = self.b.avg_pool2d if self.rng.integers(2) else self.b.max_pool2d
        return made(x, (min(2, x.shape[1]), min(3, x.shape[2])), (1, 1), padding="same", name=name)

    def join(self, x: Tensor, name: str) -> Tensor:
        like = [
            y for y in self.pool if y.shape[:3] == x.shape[:3] and (y.scale, y.zero_point) == (x.scale, x.zero_point)
        ]
        return self.b.concatenation([x, *like[:1], x], 3, name=name)

    def pad(self, x: Tensor, name: str) -> Tensor:
        return self.b.pad(x, [(0, 0), (1, 0), (0, 1), (0, 0)], name=name)

    def slice(self, x: Tensor, name: str) -> Tensor:
        return self.b.slice(x, (0, 0, 0, 0), (1, x.shape[1], 1, x.shape[3]), name=name)

    def requantize(self, x: Tensor, name: str) -> Tensor:
        return self.b.quantize(x, self.dtype, (0.04, self.zero + 1), name=name)

    def flat(self, x: Tensor, name: str) -> Tensor:
        if self.rng.integers(2):
            x = self.b.mean(x, (1, 2), keep_dims=True, out=(0.05, self.zero), name=f"{name}/mean")
        return self.b.reshape(x, (1, x.shape[1] * x.shape[2] * x.shape[3]), name=name)

    def connected(self, x: Tensor, name: str) -> Tensor:
        values, bias = self._filters((2, x.shape[1]), 0)
        scale = {"weight_scale": 0.01, "weight_zero_point": self.zero}
        return self.b.fully_connected(x, values.astype(self.dtype), bias, **scale, out=(0.2, self.zero), name=name)  # type: ignore[arg-type]


def narrowest(graph: Graph) -> Graph:
    """All channels left out that can be; one stays of each tensor."""
    found = coupled_channels(graph, value_ranges(graph))
    staying = [family.filled(~family.removable) for family in found]
    return Narrowing(graph, found, staying).graph_without()
