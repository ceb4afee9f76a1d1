"""Networks whose tensors are cut, joined, padded, overlaid and read again at random: what shares memory, and with whom.

All tensors have one scale, so that any two of a shape can be joined. The same seed gives the same file.
"""

from collections.abc import Callable

import numpy as np

from stages.ir.models.builder import ModelBuilder, Tensor

QUANT = (0.05, 3)
STEPS = 9


def network(seed: int) -> bytes:
    """A TFLite model of one or two inputs, `STEPS` operators on tensors that exist by then, and up to four outputs."""
    return _Network(np.random.default_rng(seed)).build()


class _Network:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.b = rng, ModelBuilder()
        self.width, self.channels = int(rng.integers(2, 6)), int(rng.choice([4, 8, 16]))
        self.pool = [
            self.b.input(f"x{i}", (1, int(rng.integers(3, 9)), self.width, self.channels), "int8", *QUANT)
            for i in range(int(rng.integers(1, 3)))
        ]
        self.count = 0

    def build(self) -> bytes:
        steps: list[Callable[[Tensor, str], list[Tensor]]] = [
            self.convolution, self.padded, self.relu, self.add, self.add_row, self.rows, self.split, self.join,
            self.join_channels, self.renamed,
        ]  # fmt: skip
        while self.count < STEPS:
            self.count += 1
            step = steps[int(self.rng.integers(len(steps)))]
            x = self.pool[int(self.rng.integers(max(0, len(self.pool) - 4), len(self.pool)))]
            self.pool += step(x, f"t{self.count}")
        made = self.pool[2:] if len(self.pool) > 2 else self.pool[-1:]
        chosen = {len(made) - 1, *(int(i) for i in self.rng.integers(0, len(made), int(self.rng.integers(0, 4))))}
        self.b.output(*(made[i] for i in sorted(chosen)))
        return self.b.build()

    def convolution(self, x: Tensor, name: str, padding: str = "same") -> list[Tensor]:
        values = self.rng.integers(-127, 128, (self.channels, 3, 3, x.shape[3])).astype(np.int8)
        bias = self.rng.integers(-900, 900, self.channels).astype(np.int32)
        return [self.b.conv2d(x, values, bias, weight_scale=0.004, padding=padding, out=QUANT, name=name)]

    def padded(self, x: Tensor, name: str) -> list[Tensor]:
        image = self.b.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], name=f"{name}/pad")
        return [*self.convolution(image, name, "valid"), *([image] if self.rng.integers(4) == 0 else [])]

    def relu(self, x: Tensor, name: str) -> list[Tensor]:
        return [self.b.relu(x, name=name)]

    def add(self, x: Tensor, name: str) -> list[Tensor]:
        others = [y for y in self.pool if y.shape == x.shape]
        return [self.b.add(x, others[int(self.rng.integers(len(others)))], out=QUANT, name=name)]

    def add_row(self, x: Tensor, name: str) -> list[Tensor]:
        """A tensor and its own first row, broadcast."""
        row = self.b.slice(x, (0, 0, 0, 0), (1, 1, *x.shape[2:]), name=f"{name}/row")
        return [self.b.add(x, row, out=QUANT, name=name)]

    def rows(self, x: Tensor, name: str) -> list[Tensor]:
        begin = int(self.rng.integers(x.shape[1]))
        size = int(self.rng.integers(1, x.shape[1] - begin + 1))
        return [self.b.slice(x, (0, begin, 0, 0), (1, size, *x.shape[2:]), name=name)]

    def split(self, x: Tensor, name: str) -> list[Tensor]:
        parts = [n for n in (2, 3, 4) if x.shape[1] % n == 0]
        return self.b.split(x, parts[0], 1, name=name) if parts else self.relu(x, name)

    def join(self, x: Tensor, name: str) -> list[Tensor]:
        """Up to four tensors below one another, maybe one of them twice."""
        fitting = [y for y in self.pool if y.shape[2:] == x.shape[2:]]
        others = [fitting[int(i)] for i in self.rng.integers(0, len(fitting), int(self.rng.integers(1, 4)))]
        return [self.b.concatenation([x, *others], 1, name=name)] if x.shape[1] < 20 else self.relu(x, name)

    def join_channels(self, x: Tensor, name: str) -> list[Tensor]:
        fitting = [y for y in self.pool if y.shape[:3] == x.shape[:3]]
        other = fitting[int(self.rng.integers(len(fitting)))]
        return [self.b.concatenation([x, other], 3, name=name)] if x.shape[3] < 40 else self.relu(x, name)

    def renamed(self, x: Tensor, name: str) -> list[Tensor]:
        """A reshape to the shape it has: another name for the same memory."""
        return [self.b.reshape(x, x.shape, name=name)]
