"""ModelBuilder: what it writes means in LiteRT what the method says."""

from collections.abc import Callable, Sequence

import numpy as np

from stages.ir.models.builder import ModelBuilder, Tensor

Build = Callable[[ModelBuilder, Tensor], Tensor | list[Tensor]]
SHAPE = (1, 6, 5, 4)


def model(build: Build, dtype: str = "float32", shape: Sequence[int] = SHAPE) -> bytes:
    b = ModelBuilder()
    quant = {"float32": (None,), "int8": (0.05, -3), "uint8": (0.05, 125)}[dtype]
    made = build(b, b.input("x", shape, dtype, *quant))
    b.output(*(made if isinstance(made, list) else [made]))
    return b.build()


def test_same_calls_give_the_same_bytes_and_constants_are_shared_and_aligned() -> None:
    table = np.arange(64, dtype=np.float32).reshape(1, 1, 16, 4)

    def build(b: ModelBuilder, x: Tensor) -> Tensor:
        x = b.add(x, b.constant("a", table))
        return b.add(x, b.constant("b", table.copy()))

    data = model(build, shape=(1, 6, 16, 4))
    assert data == model(build, shape=(1, 6, 16, 4))
    assert data.count(table.tobytes()) == 1
    assert data.index(table.tobytes()) % 16 == 0
