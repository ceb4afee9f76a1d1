"""`optimize_for`: kernels for few bytes of ROM, or for a small arena, instead of for speed alone."""

from typing import Any

import pytest

from stages.backends.kernels import registry
from stages.ir.graph import Graph
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.build import decide
from stages.tensorize.choices import Chosen
from stages.tensorize.memory import ArenaBound
from stages.tensorize.pass_context import PassContext
from stages.tensorize.rom import ConstantStorage, Rom
from stages.tensorize.rom_tradeoff import CODE
from tests.support.emitted import target_named
from tests.support.integer import integer_graph


def graph_of(**options: Any) -> Graph:
    return integer_graph(build(OpModel.model_validate(options)))


def setting(target: str, **options: Any) -> PassContext:
    core = target_named(target)
    return PassContext.of(core, TensorizeConfig(**options), registry.kernels_of(core).values())


def decided(graph: Graph, target: str, **options: Any) -> tuple[Chosen, PassContext]:
    made = setting(target, **options)
    return decide(graph, made)[0], made


def instructions(chosen: Chosen) -> float:
    return sum(choice.cost or 0 for choice in chosen.choices.values())


def bytes_of(chosen: Chosen, made: PassContext) -> int:
    """Of constants, and of code as it is estimated where nothing is counted."""
    rom = Rom(made.target)
    views = {index: chosen.graph.view(chosen.graph.layers[index]) for index in chosen.choices}
    sources = {(c.kernel.folder.name, source) for c in chosen.choices.values() for source in c.kernel.sources}
    constants = sum(rom.storage(views[index], c.kernel, c.params).bytes for index, c in chosen.choices.items())
    return constants + CODE * len(sources)


def arena(chosen: Chosen, made: PassContext) -> int:
    bound = ArenaBound(chosen.graph, 0, made.lowerings)
    most = 0
    for index, choice in chosen.choices.items():
        view = chosen.graph.view(chosen.graph.layers[index])
        most = max(most, sum(bound.needed(view, choice.kernel, choice.params)))
        bound.assign(view, choice.kernel)
    return most


WIDE = {"op": "depthwise_conv2d", "shape": (12, 12, 128), "kernel": (3, 3)}
TEMPORAL = {"op": "conv2d", "shape": (49, 10, 1), "out_channels": 32, "kernel": (10, 4), "stride": (2, 2)}
PLAIN = {"op": "conv2d", "shape": (16, 16, 24), "out_channels": 24, "kernel": (3, 3)}


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "rv32-rvp"])
@pytest.mark.parametrize("model", [WIDE, TEMPORAL, PLAIN], ids=["wide", "temporal", "plain"])
def test_each_objective_is_least_in_its_own(target: str, model: dict[str, Any]) -> None:
    graph = graph_of(**model)
    found = {name: decided(graph, target, optimize_for=name) for name in ("speed", "rom", "ram")}
    sizes = {name: bytes_of(*one) for name, one in found.items()}
    arenas = {name: arena(*one) for name, one in found.items()}
    assert sizes["rom"] == min(sizes.values())
    assert arenas["ram"] == min(arenas.values())
    assert instructions(found["speed"][0]) <= min(instructions(chosen) for chosen, _ in found.values())


def test_bytes_are_weighed_against_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(**WIDE)
    fast, _ = decided(graph, "rv32-rvp")
    few = {True: 500, False: 1000}
    monkeypatch.setattr(
        Rom, "variants", lambda self, view, kernel, params: (ConstantStorage(few["generic" in kernel.name]),)
    )
    small, _ = decided(graph, "rv32-rvp", optimize_for="rom")
    (choice,), (usual,) = small.choices.values(), fast.choices.values()
    assert (usual.kernel.name, choice.kernel.name) == ("rvp.depthwise3x3_s8", "generic.depthwise_conv2d")
    assert choice.why.startswith("cheapest of ") and "with its bytes of ROM" in choice.why
    few[True] = 998  # a fifth of a percent is not worth eight times the instructions
    (same,) = decided(graph, "rv32-rvp", optimize_for="rom")[0].choices.values()
    assert same.kernel.name == "rvp.depthwise_s8"  # of one source of code, where depthwise3x3_s8 has two


def test_the_least_arena_is_found_whatever_the_limit() -> None:
    graph = graph_of(**PLAIN)
    least = arena(*decided(graph, "rv32-rvp", optimize_for="ram"))
    high, made = decided(graph, "rv32-rvp", optimize_for="ram", arena_limit=1 << 20)
    assert arena(high, made) == least
    assert arena(*decided(graph, "rv32-rvp", optimize_for="ram", arena_limit=1_000)) == least


@pytest.mark.parametrize("wanted", ["rom", "ram"])
def test_rules_are_obeyed(wanted: str) -> None:
    rule = TensorizeRule(kernel="arm_dsp.depthwise3x3_s8")
    chosen, _ = decided(graph_of(**WIDE), "cortex-m4", optimize_for=wanted, rules=(rule,))
    assert [choice.kernel.name for choice in chosen.choices.values()] == ["arm_dsp.depthwise3x3_s8"]
