"""Changes of layout as copies: every element comes to its place, and nothing else is written."""

from itertools import product

import numpy as np
import pytest

from stages.backends.kernels.copies import Copy, relayouts, why_not_relayouts
from stages.ir.graph import Layout, Tensor
from stages.ir.packed import pack

TEXTS = ("NHWC", "NCHW", "NCHW4c", "NCHW16c", "NHWC4c", "NCHW4h4w", "NCHW8c2c", "CHWN", "NCHW2w16c")


def tensor(name: str, shape: tuple[int, ...], layout: str) -> Tensor:
    return Tensor(name=name, shape=shape, dtype="int16", layout=Layout(layout))


def copied(copies: list[Copy], source: np.ndarray, size: int) -> np.ndarray:
    memory = np.zeros(size, source.dtype)
    for copy in copies:
        for at in product(*(range(axis.extent) for axis in copy.axes)):
            into, out_of = (
                start + sum(i * axis.strides[buffer] for i, axis in zip(at, copy.axes, strict=True))
                for buffer, start in enumerate((copy.target_offset, copy.source_offset))
            )
            memory[into] = source[out_of]
    return memory


@pytest.mark.parametrize("shape", [(1, 3, 5, 20), (2, 4, 4, 16), (1, 1, 1, 3), (2, 5, 6, 33)])
@pytest.mark.parametrize(("one", "other"), list(product(TEXTS, TEXTS)))
def test_every_element_comes_to_its_place(one: str, other: str, shape: tuple[int, ...]) -> None:
    x, y = tensor("x", shape, one), tensor("y", shape, other)
    assert why_not_relayouts(x, y) == ""
    values = np.arange(1, x.elements + 1, dtype=np.int16).reshape(shape)
    wanted = pack(values, y.layout).reshape(-1)
    assert np.array_equal(copied(relayouts(x, y), pack(values, x.layout).reshape(-1), wanted.size), wanted)


def test_what_no_strides_can_say() -> None:
    shape = (1, 4, 4, 12)
    x, y = tensor("x", shape, "NCHW4c"), tensor("y", shape, "NCHW6c")
    assert why_not_relayouts(x, y) == "blocks of NCHW4c and NCHW6c do not divide each other"
    narrow = tensor("z", shape, "NCHW:4")
    assert why_not_relayouts(x, narrow) == "elements smaller than a byte"
