"""Buffers over several memories: sound in each, within what it has, and never worse than all in one of them."""

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ir.graph import Graph, Layer, Move, Pool2D, Tensor
from stages.lower.arena import Buffer, Plan, liveness, plan
from stages.lower.arena.planner import lowest_gap
from stages.lower.arena.regions import RegionCapacity, RegionOverflowError, divide
from stages.lower.arena.traffic import arena_traffic, reads_of_weights
from tests.support.kernels.mini import mini_graph
from tests.unit.arena.test_planner import assert_sound, buffers, chain

ALIGNMENT = 16
Task = tuple[list[Buffer], list[RegionCapacity], dict[str, int], dict[str, str]]


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Buffers, one to three capacities, traffic, and regions that rules give to some."""
    drawn = draw(buffers())
    capacities = [
        RegionCapacity(name, draw(st.integers(0, 900)))
        for name in ("fast", "middle", "slow")[: draw(st.integers(1, 3))]
    ]
    traffic = {b.name: draw(st.integers(0, 1000)) for b in drawn}
    ruled = draw(st.sets(st.sampled_from([b.name for b in drawn]), max_size=2)) if drawn else set()
    fixed = {name: draw(st.sampled_from(capacities)).region for name in sorted(ruled)}
    return drawn, capacities, traffic, fixed


def slow_traffic(plans: dict[str, Plan], capacities: list[RegionCapacity], traffic: dict[str, int]) -> list[int]:
    """The traffic of each capacity but the fastest, the slowest first."""
    there = {region: sum(traffic[b.name] for b in one.buffers) for region, one in plans.items()}
    return [there.get(capacity.region, 0) for capacity in capacities[:0:-1]]


def in_one_room(task: Task) -> str | None:
    """The fastest region that all buffers may lie in and that has enough."""
    drawn, capacities, _, fixed = task
    total = plan(drawn, ALIGNMENT).total
    able = [
        capacity.region for capacity in capacities if total <= capacity.bytes and {*fixed.values()} <= {capacity.region}
    ]
    return able[0] if able else None


@settings(max_examples=300)
@given(tasks())
def test_any_division_is_sound_and_at_least_as_good_as_one_room(task: Task) -> None:
    drawn, capacities, traffic, fixed = task
    one = in_one_room(task)
    try:
        plans = divide(drawn, capacities, traffic, fixed, ALIGNMENT)
    except RegionOverflowError:
        assert one is None
        return
    assert sorted(b.name for made in plans.values() for b in made.buffers) == sorted(b.name for b in drawn)
    assert list(plans) == [capacity.region for capacity in capacities if capacity.region in plans]
    for capacity in capacities:
        if capacity.region in plans:
            assert_sound(plans[capacity.region])
            assert plans[capacity.region].total <= capacity.bytes
    for name, region in fixed.items():
        assert name in {b.name for b in plans[region].buffers}
    if one is not None:
        alone = {one: plan(drawn, ALIGNMENT)}
        assert slow_traffic(plans, capacities, traffic) <= slow_traffic(alone, capacities, traffic)
    assert divide(drawn, capacities, traffic, fixed, ALIGNMENT) == plans


def test_two_rooms_are_used_nearly_as_well_as_by_trying_everything() -> None:
    """Against all divisions of up to six buffers, each side planned by itself: a plan wherever there is one, and the
    best but for one in a hundred."""
    chance, tried, worse = random.Random(5), 0, 0
    for _ in range(400):
        drawn = []
        for number in range(chance.randint(2, 6)):
            first, last = sorted(chance.choices(range(4), k=2))
            drawn.append(Buffer(f"b{number}", 16 * chance.randint(1, 10), first, last))
        traffic = {b.name: chance.randint(1, 99) for b in drawn}
        capacities = [RegionCapacity("fast", 160), RegionCapacity("slow", chance.choice([160, 240, 320]))]
        best = least_slow_traffic(drawn, capacities, traffic)
        if best is not None:
            tried += 1
            worse += slow_traffic(divide(drawn, capacities, traffic), capacities, traffic) > [best]
    assert tried > 200
    assert worse <= tried // 100


def least_slow_traffic(drawn: list[Buffer], capacities: list[RegionCapacity], traffic: dict[str, int]) -> int | None:
    found = []
    for sides in product((0, 1), repeat=len(drawn)):
        there = [[b for b, side in zip(drawn, sides, strict=True) if side == number] for number in (0, 1)]
        if all(plan(mine).total <= capacity.bytes for mine, capacity in zip(there, capacities, strict=True)):
            found.append(sum(traffic[b.name] for b in there[1]))
    return min(found, default=None)


def test_what_is_used_most_for_its_size_is_in_the_fast_room() -> None:
    """A mobile network's scratch and small late tensors are, its large early ones are not."""
    drawn = chain([27648, 18432, 36864, 9216, 4608, 256], scratch={1: 2000, 3: 1000})
    traffic = {b.name: (40 if b.kind == "scratch" else 2) * b.bytes for b in drawn}
    plans = divide(drawn, [RegionCapacity("dtcm", 16384), RegionCapacity("sram", 1 << 20)], traffic)
    assert {b.name for b in plans["sram"].buffers} == {"t0", "t1", "t2"}
    assert plans["sram"].total == 36864 + 18432
    assert plans["dtcm"].total == 9216 + 4608 + 1008  # t3, t4 and what layer 3 gathers


def test_a_region_keeps_the_offsets_found_where_planning_it_alone_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stages.lower.arena.planner.SEARCH_STEPS", 0)
    sizes = {"a": (64, 5, 5), "b": (48, 2, 5), "c": (32, 4, 4), "d": (48, 2, 4), "e": (48, 4, 5)}
    drawn = [Buffer(name, *size) for name, size in sizes.items()]
    capacity = RegionCapacity("fast", plan(drawn).lower_bound)
    assert plan(drawn).total > capacity.bytes
    found = divide(drawn, [capacity, RegionCapacity("slow", 16)], {})["fast"]
    assert_sound(found)
    assert found.total == capacity.bytes


def test_hundreds_of_buffers_take_no_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in searches of a gap, about 12 us each for these buffers."""
    searches = 0

    def counted(*arguments: Any) -> int:
        nonlocal searches
        searches += 1
        return lowest_gap(*arguments)

    for module in ("planner", "regions"):
        monkeypatch.setattr(f"stages.lower.arena.{module}.lowest_gap", counted)
    drawn = chain([1000 + 37 * (i * 7919 % 101) for i in range(150)], scratch={i: 500 + i for i in range(149)})
    divide(drawn, [RegionCapacity("fast", 6000), RegionCapacity("slow", 20_000)], {b.name: b.bytes for b in drawn})
    assert len(drawn) < searches < 300_000


def pooled() -> Graph:
    """x (1, 4, 4, 8) pooled in windows of 3 x 3 by steps of 1 to y, of which z is another name."""
    shapes = {"x": (1, 4, 4, 8), "y": (1, 4, 4, 8), "z": (16, 8)}
    tensors = {name: Tensor(name=name, shape=shape, dtype="int8") for name, shape in shapes.items()}
    tensors["z"] = tensors["z"].model_copy(update={"alias_of": "y"})
    window = {"kernel": (3, 3), "stride": (1, 1), "padding": (1, 1, 1, 1)}
    pool = Pool2D(op="max_pool2d", output_zero_point=0, act_min=-128, act_max=127, **window)
    layers = [
        Layer(index=0, name="y", op=pool, inputs=("x",), outputs=("y",)),
        Layer(index=1, name="z", op=Move(kind="reshape"), inputs=("y",), outputs=("z",)),
    ]
    return Graph(tensors, layers, ["x"], ["z"])


def test_each_window_reads_and_scratch_is_written_and_read_as_often() -> None:
    graph = pooled()
    scratch = {0: {"rows": 30, "sums": 10}}
    traffic = arena_traffic(graph, liveness(graph, scratch), scratch, {1})
    # x is filled once and read nine times; y written once, and read as z.
    assert traffic == {"x": 128 + 9 * 128, "y": 128 + 128, "scratch:0:rows": 2 * 864, "scratch:0:sums": 2 * 288}


def test_weights_are_read_for_each_multiplication() -> None:
    graph = mini_graph(batch=8, depth=12, units=(6,))
    assert reads_of_weights(graph, graph.layers[0], 72) == 8
    assert reads_of_weights(graph, graph.layers[0], 10_000) == 1
