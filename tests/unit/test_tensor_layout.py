"""Layouts against numpy: shapes, places, bytes, which are the same; and texts that are none."""

from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from stages.ir.packed import bits_of, pack, unpack
from stages.ir.tensor_layout import NHWC, Layout


def drawn(rng: np.random.Generator) -> tuple[Layout, tuple[int, ...]]:
    """A layout of four axes with up to three blocks, and a shape with axes of one element, of whole blocks and not."""
    axes = rng.permutation(list("NHWC")).tolist()
    for _ in range(int(rng.integers(4))):
        axis = str(rng.choice(list("NHWC")))
        axes.insert(int(rng.integers(axes.index(axis) + 1, len(axes) + 1)), f"{rng.integers(2, 5)}{axis.lower()}")
    bits = str(rng.choice(["", "", ":4", ":2", ":1"]))
    return Layout("".join(axes) + bits), tuple(int(n) for n in rng.choice([1, 1, 2, 3, 4, 5, 8], 4))


def by_reshaping(values: NDArray[np.generic], layout: Layout) -> NDArray[np.generic]:
    """`pack` said otherwise: fill up, split each axis into its parts, transpose."""
    parts = [(part.axis, part.size) for part in layout.parts]
    split: list[int] = []
    order: dict[int, int] = {}
    padding = []
    for axis, size in zip("NHWC", values.shape, strict=True):
        positions = [i for i, (letter, _) in enumerate(parts) if letter == axis]
        blocks = [parts[i][1] for i in positions[1:]]
        outer = -(-size // prod(blocks))
        padding.append((0, outer * prod(blocks) - size))
        order.update({i: len(split) + number for number, i in enumerate(positions)})
        split += [outer, *blocks]
    return np.pad(values, padding).reshape(split).transpose([order[i] for i in range(len(parts))])


@pytest.mark.parametrize("seed", range(200))
def test_a_layout_is_what_numpy_makes_of_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout, shape = drawn(rng)
    low, high = (-(1 << layout.bits - 1), 1 << layout.bits - 1) if layout.bits else (-128, 128)
    values = rng.integers(low, high, shape).astype(np.int8)
    wide = Layout(layout.partition(":")[0])
    memory = pack(values, wide)
    assert np.array_equal(memory, by_reshaping(values, wide))
    assert memory.shape == layout.physical_shape(shape)
    for index in product(*map(range, shape)):
        assert memory.reshape(-1)[layout.offset(index, shape)] == values[index]
    narrow = pack(values, layout)
    assert narrow.nbytes == layout.bytes(shape)
    assert np.array_equal(unpack(narrow, layout, shape), values)
    assert np.array_equal(unpack(narrow.reshape(-1), Layout(layout), shape), values)


@pytest.mark.parametrize("seed", range(300))
def test_layouts_are_the_same_when_all_bytes_are(seed: int) -> None:
    """The bytes of elements; those that fill up may be anything."""
    rng = np.random.default_rng(seed)
    one, shape = drawn(rng)
    other = Layout(drawn(rng)[0].partition(":")[0] + "".join(one.partition(":")[1:]))
    if seed % 3 == 0:  # nearer to each other
        shape = (1, shape[1], 1, shape[3])
    numbers = np.arange(1, prod(shape) + 1).reshape(shape)
    mine, others = (pack(numbers, Layout(each.partition(":")[0])).reshape(-1) for each in (one, other))
    assert one.lies_as(other, shape) == np.array_equal(mine, others), (one, other, shape)


def test_narrow_elements_begin_in_the_lowest_bits() -> None:
    assert pack(np.array([[1, -1, 7]], np.int8), Layout("NC:4")).tolist() == [0xF1, 0x07]
    assert pack(np.array([[3, 0, 1, 2, 1]], np.uint8), Layout("NC:2")).tolist() == [0b10010011, 0b01]
    assert Layout("OHWI4i:4").bytes((8, 3, 3, 5), axes="OHWI") == 8 * 3 * 3 * 8 // 2
    with pytest.raises(ValueError, match="4 bits hold -8 to 7, values are 0 to 8"):
        pack(np.array([0, 8], np.int8), Layout("C:4"))


def test_axes_have_letters_by_rank_or_given() -> None:
    assert Layout("HWIO").physical_shape((8, 3, 5, 4), "OHWI") == (3, 5, 4, 8)
    assert Layout("").physical_shape((2, 3, 4, 5, 6, 7)) == (2, 3, 4, 5, 6, 7)
    assert Layout("").physical_shape(()) == ()
    with pytest.raises(ValueError, match="layout OHWI has other axes than NHWC"):
        Layout("OHWI").bytes((1, 2, 3, 4))
    with pytest.raises(ValueError, match="layout NHWC has other axes than NC"):
        NHWC.bytes((1, 2))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nhwc", "axes are capitals, blocks size and small letter, as in NCHW16c"),
        ("NHW C", "axes are capitals"),
        ("NHWCC", "it has an axis twice"),
        ("NHW4cC", "block 4c needs C before it"),
        ("NHWC1c", "a block of one element"),
        ("NHWC0c", "axes are capitals"),
        ("NHWC:3", "the bits per element after the colon must be 1, 2 or 4"),
        (":4", "axes are capitals"),
    ],
)
def test_texts_that_are_no_layouts(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Layout(text)
    with pytest.raises(ValidationError, match=reason):
        TypeAdapter(Layout).validate_python(text)


@pytest.mark.parametrize(("values", "bits"), [([], 1), ([-1, 0], 1), ([1], 2), ([7, -8], 4), ([8], 5), ([-128], 8)])
def test_how_many_bits_integers_need(values: list[int], bits: int) -> None:
    assert bits_of(np.array(values, np.int8)) == bits
