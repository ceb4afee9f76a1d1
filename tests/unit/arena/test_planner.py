"""The arena plan: never two live buffers in one place, never below the bound, and at the bound on real shapes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.lower.arena import Buffer, plan
from stages.lower.arena.planner import Plan, _first_fit, _total, lower_bound, orders


def assert_sound(result: Plan) -> None:
    """What any plan must satisfy, checked from the definition: byte by byte of each layer."""
    for i, a in enumerate(result.buffers):
        start = result.offsets[a.name]
        assert start % result.alignment == 0
        assert start + a.bytes <= result.total
        for b in result.buffers[i + 1 :]:
            if a.first <= b.last and b.first <= a.last:
                other = result.offsets[b.name]
                assert start + a.bytes <= other or other + b.bytes <= start, (a, b)


@st.composite
def buffers(draw: st.DrawFn) -> list[Buffer]:
    count = draw(st.integers(0, 12))
    out = []
    for index in range(count):
        first = draw(st.integers(0, 9))
        last = draw(st.integers(first, 9))
        out.append(Buffer(f"b{index}", draw(st.integers(0, 300)), first, last))
    return out


@settings(max_examples=150)
@given(buffers(), st.sampled_from([1, 4, 16, 64]))
def test_no_two_live_buffers_overlap(drawn: list[Buffer], alignment: int) -> None:
    result = plan(drawn, alignment)
    assert_sound(result)
    live_bytes = [sum(b.bytes for b in drawn if b.first <= now <= b.last) for now in range(10)]
    assert result.total >= max(live_bytes)
    assert result.total >= result.lower_bound >= max(live_bytes)
    assert result.total <= sum(b.bytes + alignment for b in drawn)


def chain(sizes: list[int], skips: dict[int, int] | None = None, scratch: dict[int, int] | None = None) -> list[Buffer]:
    """A network in which layer i reads tensor i and writes tensor i + 1; layer `skips[i]` reads tensor i too."""
    last_layer = len(sizes) - 2
    tensors = [
        Buffer(f"t{i}", size, max(i - 1, 0), max((skips or {}).get(i, 0), min(i, last_layer)))
        for i, size in enumerate(sizes)
    ]
    return tensors + [Buffer(f"s{i}", size, i, i, "scratch") for i, size in (scratch or {}).items()]


# Activations in bytes of the four MLPerf Tiny networks, from their published topologies (int8: one byte an element).
DS_CNN = [49 * 10, *[25 * 5 * 64] * 9, 64, 12, 12]
AUTOENCODER = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640]
MOBILENET = [
    96 * 96 * 3,
    48 * 48 * 8, 48 * 48 * 8, 48 * 48 * 16, 24 * 24 * 16, 24 * 24 * 32, 24 * 24 * 32, 24 * 24 * 32, 12 * 12 * 32,
    12 * 12 * 64, 12 * 12 * 64, 12 * 12 * 64, 6 * 6 * 64, 6 * 6 * 128, 6 * 6 * 128, 6 * 6 * 128, 256, 2, 2,
]  # fmt: skip
RESNET = [32 * 32 * 3, *[32 * 32 * 16] * 4, *[16 * 16 * 32] * 4, *[8 * 8 * 64] * 4, 64, 10, 10]
RESNET_SKIPS = {1: 3, 4: 7, 8: 11}


@pytest.mark.parametrize(
    "drawn",
    [
        chain(DS_CNN, scratch={0: 4 * 40, 1: 27 * 7 * 64}),
        chain(AUTOENCODER),
        chain(MOBILENET, scratch={i: 1000 + 37 * i for i in range(len(MOBILENET) - 1)}),
        chain(RESNET, RESNET_SKIPS, scratch=dict.fromkeys(range(9), 4 * 9 * 64)),
    ],
    ids=["ds_cnn", "autoencoder", "mobilenet", "resnet"],
)
def test_mlperf_tiny_networks_reach_the_lower_bound(drawn: list[Buffer]) -> None:
    result = plan(drawn)
    assert_sound(result)
    assert result.total == result.lower_bound


def test_the_search_closes_what_the_ready_made_orders_leave() -> None:
    rows = {"a": (64, 5, 5), "b": (48, 2, 5), "c": (32, 4, 4), "d": (48, 2, 4), "e": (48, 4, 5)}
    drawn = [Buffer(name, *row) for name, row in rows.items()]
    sizes = {b.name: b.bytes for b in drawn}
    first_fits = [_first_fit(order, sizes) for order in orders(drawn, sizes)]
    result = plan(drawn)
    assert_sound(result)
    assert min(_total(offsets, sizes) for offsets in first_fits) > result.lower_bound
    assert result.total == result.lower_bound


def test_the_search_goes_through_plans_that_are_as_large_as_the_best() -> None:
    drawn = [
        Buffer("a", 48, 1, 4), Buffer("b", 64, 6, 7), Buffer("c", 80, 3, 3), Buffer("d", 80, 6, 6),
        Buffer("e", 96, 7, 7), Buffer("f", 32, 4, 6), Buffer("g", 96, 2, 7), Buffer("h", 32, 4, 7),
        Buffer("i", 80, 0, 5),
    ]  # fmt: skip
    assert plan(drawn).total == lower_bound(drawn)
