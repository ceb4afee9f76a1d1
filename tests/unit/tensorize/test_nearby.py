"""What a model of a kernel is off by, taken from the measured layers that are most like the one in question."""

from __future__ import annotations

import pytest

from stages.tensorize.nearby import Nearby

NAME = "mini.gemm mr=4"


def conv(channels: int, outputs: int, *, size: int = 8, layout: str = "", more: str = "kernel=1x1 stride=1x1") -> str:
    shape = f"1x{size}x{size}"
    return f"conv2d int8[{shape}x{channels}]{layout} -> int8[{shape}x{outputs}]{layout} {more} weights=int8"


def nearby(**ratios: float) -> Nearby:
    """Of layers `few` (3 outputs) and `many` (64 outputs): what was measured, 1,000 being what the model says."""
    texts = {"few": conv(8, 3), "many": conv(8, 64)}
    return Nearby({texts[name]: {NAME: (1000 * ratio, 1000, None)} for name, ratio in ratios.items()})


def test_a_layer_like_a_measured_one_is_off_as_that_is() -> None:
    found = nearby(few=2.0, many=1.0)
    assert found.factor(NAME, conv(8, 3, size=9)) == pytest.approx(2.0, rel=0.05)
    assert found.factor(NAME, conv(8, 60)) == pytest.approx(1.0, rel=0.05)
    assert 1.1 < found.factor(NAME, conv(8, 12)) < 1.9  # between both


def test_what_is_far_changes_little() -> None:
    found = nearby(few=2.0)
    assert found.factor(NAME, conv(2048, 2048, size=224)) == pytest.approx(1.0, abs=0.05)
    assert found.factor(NAME, conv(8, 3)) == pytest.approx(2.0, rel=0.02)


def test_layouts_windows_and_padding_are_distances_too() -> None:
    here = conv(8, 3)
    others = (conv(8, 3, layout="NCHW"), conv(8, 3, more="kernel=5x5 stride=2x2"), conv(8, 3, more="padding=1x1x1x1"))
    for text in others:
        found = Nearby({here: {NAME: (500, 1000, None)}, text: {NAME: (1000, 1000, None)}})
        assert found.factor(NAME, here) < 0.6 < found.factor(NAME, text), text


def test_other_kinds_other_variants_and_figures_of_nothing_do_not_count() -> None:
    found = nearby(few=2.0)
    assert found.factor("mini.gemm mr=2", conv(8, 3)) == 1.0
    assert found.factor(NAME, conv(8, 3).replace("conv2d", "depthwise_conv2d")) == 1.0
    assert Nearby({conv(8, 3): {NAME: (900, 0, None)}}).factor(NAME, conv(8, 3)) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "fully_connected int8[1x64] -> int8[1x10] weights=int8",
        "mul int8[1x8x8x8] int8[1] -> int8[1x8x8x8]",
        "concatenation int8[2x1x2x2x4] int8[2x1x2x2x4] -> int8[2x1x2x2x8] axis=4",
        "layout int8[1x8x8x16] -> int8[1x8x8x16]NCHW16c",
        "conv2d int8[1x9x9x16] -> int8[1x5x5x16] kernel=3x3 stride=2x2 padding=1x1x1x1 dilation=1x1 groups=4",
        "mean int8[] -> int8[]",
    ],
)
def test_every_signature_has_a_place(text: str) -> None:
    assert Nearby({text: {NAME: (300, 100, None)}}).factor(NAME, text) == pytest.approx(3.0, rel=0.02)


def test_a_factor_is_the_same_number_on_every_machine() -> None:
    """To its last digit, which kernels are chosen by: numpy's and C's logarithms have another one here and there."""
    layers = {conv(8 + 3 * n, 5 * n + 1, size=n + 2): 1000 + 77 * n * n % 431 for n in range(20)}
    found = Nearby({text: {NAME: (took, 1000, None)} for text, took in layers.items()})
    asked = (conv(5, 3, size=7), conv(11, 13, size=9), conv(17, 19, size=10), conv(64, 10, size=1))
    factors = [found.factor(NAME, text).hex() for text in asked]
    assert factors == ["0x1.28e3a8b47f61cp+0", "0x1.3ed830c89ea32p+0", "0x1.3cb1af8503524p+0", "0x1.12b2b4099b4bfp+0"]


def test_a_small_layer_does_not_take_what_a_model_of_large_ones_says_of_each_call() -> None:
    """The kernel's own estimate is right but for a factor, which is between one and a half and two."""
    large = {conv(64, 64): {NAME: (16_000, 15_500, 8_000)}, conv(64, 48): {NAME: (18_000, 18_300, 12_000)}}
    assert Nearby(large).instructions(NAME, conv(4, 4), 14_500, 100) > 10_000  # too few to tell
    large |= {conv(64, 40, size=size): {NAME: (17_000, 17_000, 10_000)} for size in (7, 8)}
    found = Nearby(large)
    assert found.instructions(NAME, conv(4, 4), 14_500, 100) == 200
    assert found.instructions(NAME, conv(4, 4), 20, 100) == 150
    assert found.instructions(NAME, conv(4, 4), 14_500, None) > 14_000
    assert found.instructions("mini.gemm mr=2", conv(4, 4), 14_500, 100) == 14_500
    assert Nearby({**large, conv(9, 9): {NAME: (90, 90, None)}}).instructions(NAME, conv(4, 4), 14_500, 100) > 10_000
