"""Advice: each rule holds for a run that proves it, and for no other; its commands are those of the recipe."""

import itertools
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.commands.dispatch import command_classes
from pipeline.keys.repeat_command import completed_command
from pipeline.plugins.registry import default_registry
from pipeline.project import project_of
from pipeline.recipes.loader import load_recipe
from stages.delivery.export import registry as registry_of_forms
from stages.ir.graph import Activation, FullyConnected, Graph, Layer, LayerOp, Layout, Move, Softmax, Tensor
from stages.report.advice import memory_rules, region_rules, time_rules
from stages.report.advice.advise import advice_line, advise, few
from stages.report.advice.facts import RECIPE, Advice, Facts, Saving
from stages.support.system.installation import INSTALLATION

RELU = Activation(function="relu")
LAYOUT = Move(kind="layout")
PRODUCT = FullyConnected(
    batch=1, depth=12, units=12, input_zero_point=0, output_zero_point=0, act_min=-128, act_max=127
)


def entry(index: int, **changes: Any) -> dict[str, Any]:
    usual = {"index": index, "kernel": "rvp.relu", "why": "cheapest", "cost": 100.0, "cost_source": "counted"}
    return {**usual, "alternatives": [], "steps": [], "program": None, "packable": None, **changes}


def other(kernel: str, cost: float | None, reason: str = "", source: str = "counted", flips: int = 0) -> dict[str, Any]:
    return {"kernel": kernel, "cost": cost, "cost_source": source, "reason": reason, "flips": flips}


_OFFSETS = itertools.count(0, 4096)  # buffers that do not overlap


def buffer(name: str, size: int, first: int, last: int) -> dict[str, Any]:
    kind = "scratch" if name.startswith("scratch") else "tensor"
    place = {"region": "ram", "offset": next(_OFFSETS), "bytes": size, "first": first, "last": last}
    return {"name": name, "kind": kind, **place, "holds": [{"name": name, "first": first, "bytes": size}]}


def facts(
    *layers: dict[str, Any],
    op: LayerOp = RELU,
    dtype: str = "int8",
    layout: str = "",
    quantized: Any = None,
    **changes: Any,
) -> Facts:
    """A network of two layers, x -> y -> z, which take 400 and 600 instructions."""
    entries = layers or (entry(0), entry(1))
    tensors = {name: Tensor(name=name, shape=(1, 2, 2, 3), dtype=dtype) for name in "xyz"}
    tensors["y"] = tensors["y"].model_copy(update={"layout": Layout(layout)})
    graph = [
        Layer(index=n, name=b, op=op if n else RELU, inputs=(a,), outputs=(b,)) for n, (a, b) in enumerate(("xy", "yz"))
    ]
    computed = Graph(tensors, graph, ["x"], ["z"])
    report = {
        "target": "rv64-rvp",
        "instructions": {"total": 1000},
        "layers": [{"index": n, "op": "relu", "name": "yz"[n], "instructions": 400 + 200 * n} for n in range(2)],
        "legalize": {"tensors": {dtype: 3}},
        "quantization": None,
        "memory": {"rom_bytes": 9000, "model_rom_bytes": 9000},
        "arena": [buffer("x", 100, 0, 0), buffer("y", 100, 0, 1), buffer("z", 50, 1, 1)],
        **changes,
    }
    plan = {"layers": entries, "objective": "balanced", "unit": "instructions"}
    return Facts(report, plan, computed, quantized or computed)


def with_plan(found: Facts, **changes: Any) -> Facts:
    return replace(found, plan={**found.plan, **changes})


def engine(*others: str, step: str = "work") -> Facts:
    cycles = {"total": 1000, "layers": [{"index": 1, "core": 300}, {"index": 0, "core": 700}]}
    layers = (entry(0), entry(1, kernel="ne16", program={"commands": [{"do": step}]}))
    return with_plan(facts(*layers, cycles=cycles), requantize="core", requantizers=others)


def weights(dtype: str) -> Graph:
    """A graph whose layers read one matrix of 40 elements, the last one as a fully connected layer."""
    graph = facts(op=PRODUCT).computed
    layers = [layer.model_copy(update={"constants": {"weights": "w"}}) for layer in graph.layers]
    return replace(graph, layers=layers, constants={"w": np.ones((4, 10), dtype)})


def constant(name: str, size: int, *layers: int) -> dict[str, Any]:
    return {"name": name, "bytes": size, "layers": [*layers], "region": "fast"}


def in_slow_memory(
    *layers: dict[str, Any], speed: int = 1, used: int = 800, holds: Any = ("arena", "weights"), **changes: Any
) -> Facts:
    """The tensor y, or constants of `weights`, in the region `slow`."""
    regions = {"fast": {"speed": 0, "holds": holds}, "slow": {"speed": speed, "holds": ["arena", "weights"]}}
    arena = [{**buffer(name, 100, 0, 1), "region": "fast"} for name in "xyz"]
    if "weights" not in changes:
        arena[1]["region"] = "slow"
    memory = {"regions": [{"name": "fast", "length": 1000, "used": used}]}
    run = facts(*layers, **{"arena": arena, "weights": [], "memory": memory, **changes})
    return replace(run, regions=regions)


def of_layer(rule: Callable[[Facts, int], Advice | None]) -> Callable[[Facts], Advice | None]:
    return lambda found: rule(found, 1)


PTQ, INT4 = ({"layers": [{"op": "fully_connected", "weights": dtype}]} for dtype in ("int8", "int4"))
SCRATCH = [buffer("y", 100, 0, 1), buffer("scratch:1:rows", 60, 1, 1)]
WIDE = [buffer("y", 100, 0, 1), buffer("scratch:1:wide_weights", 60, 1, 1)]
GENERIC = entry(1, kernel="generic.relu", alternatives=[other("rvp.relu", None, "tensor z has 3 channels, not 4")])
PACKABLE = entry(1, packable={"bits": 4, "bytes": 500, "scratch": 1000})
FASTER = [other("rvp.fast", 40.0), other("rvp.guess", 1.0, source="estimated"), other("rvp.flip", 2.0, flips=1)]
ALTERNATIVES = (entry(0), entry(1, alternatives=[other("rvp.small", 300.0)]))
LIMITED = "cheapest of 3 that keeps to the arena's limit (counted)"
UNPACKS = (entry(0), entry(1, cost=500.0, constants={"weights": "w"}))
RUN = f"doit run {RECIPE} set=stages."

# A rule, a run in which it holds, its saving and command, words of its sentence, and runs in which it does not hold.
CASES: dict[str, tuple[Callable[[Facts], Advice | None], Facts, Saving | None, str | None, str, list[Facts]]] = {
    "engine_requantizes": (
        time_rules.engine_requantizes,
        engine("engine"),
        None,
        f"{RUN}tensorize.requantize=engine",
        "The core works 300 of 1,000 cycles in the 1 layers",
        [engine(), engine("engine", step="start"), facts()],
    ),
    "slower_for_size": (
        time_rules.slower_for_size,
        facts(entry(0), entry(1, alternatives=FASTER)),
        Saving(60, "instructions"),
        f"{RUN}tensorize.optimize_for=speed",
        "runs rvp.relu for less ROM; rvp.fast takes 60 instructions less",
        [
            facts(entry(0), entry(1, alternatives=FASTER[1:])),
            facts(entry(0), entry(1, alternatives=FASTER, cost_source="estimated")),
            facts(entry(0), entry(1, alternatives=FASTER, why="rule 1 of the recipe")),
            facts(entry(0), entry(1, alternatives=FASTER, steps=[{"roles": ["scratch:wide_weights"]}])),
            with_plan(facts(entry(0), entry(1, alternatives=FASTER)), objective="speed"),
            facts(entry(0), entry(1, alternatives=[other("rvp.same", 99.0)])),
        ],
    ),
    "slower kernels of optimize_for: rom": (
        time_rules.slower_for_size,
        with_plan(facts(entry(0), entry(1, alternatives=FASTER)), objective="rom"),
        Saving(60, "instructions"),
        f"{RUN}tensorize.optimize_for=balanced",
        "runs rvp.relu for less ROM; rvp.fast takes 60 instructions less",
        [],
    ),
    "slower kernels of optimize_for: ram": (
        time_rules.slower_for_size,
        with_plan(facts(entry(0), entry(1, alternatives=FASTER, why=LIMITED)), objective="ram"),
        Saving(60, "instructions"),
        f"{RUN}tensorize.optimize_for=balanced",
        "runs rvp.relu for less RAM",
        [
            with_plan(facts(entry(0), entry(1, alternatives=FASTER)), objective="ram"),
            facts(entry(0), entry(1, alternatives=FASTER, why=LIMITED)),
        ],
    ),
    "unpacked_each_inference": (
        time_rules.unpacked_each_inference,
        facts(*UNPACKS, arena=WIDE, weights=[constant("w", 30, 1)]),
        Saving(310, "instructions"),
        f"{RUN}tensorize.narrow_weights=false",
        "unpacks 60 weights in each inference: 31 % of the instructions. Stored in 8 bits they need 30 bytes of ROM",
        [
            facts(*UNPACKS, arena=SCRATCH),
            facts(entry(0), {**UNPACKS[1], "cost_source": "estimated"}, arena=WIDE),
            facts(entry(0), {**UNPACKS[1], "cost": 805.0}, arena=WIDE),
            with_plan(facts(*UNPACKS, arena=WIDE), unit="cycles"),
        ],
    ),
    "slow_memory": (
        region_rules.slow_memory,
        in_slow_memory(),
        None,
        f"{RUN}tensorize.optimize_for=ram",
        "fast is too small for all. About 40 % of all bytes that an inference reads and writes are there, most of them",
        [
            facts(),
            in_slow_memory(speed=0),
            in_slow_memory(holds=["weights"]),
            with_plan(in_slow_memory(), objective="ram"),
            replace(in_slow_memory(), ruled=frozenset([("fast", "arena")])),
        ],
    ),
    "slow memory by a rule of the recipe": (
        region_rules.slow_memory,
        replace(in_slow_memory(), ruled=frozenset([("slow", "arena")])),
        None,
        f"doit run {RECIPE} 'set=memory.rules=[]'",
        "by memory rules of the recipe; fast has 200 bytes free",
        [replace(in_slow_memory(used=950), ruled=frozenset([("slow", "arena")]))],
    ),
    "weights in slow memory": (
        region_rules.slow_memory,
        in_slow_memory(entry(0), PACKABLE, weights=[{**constant("w", 40, 1), "region": "slow"}]),
        None,
        f"{RUN}tensorize.narrow_weights=true",
        "1 constant of 40 bytes is in slow",
        [in_slow_memory(weights=[{**constant("w", 40, 1), "region": "slow"}])],
    ),
    "rule_of_recipe": (
        of_layer(time_rules.rule_of_recipe),
        facts(entry(0), entry(1, alternatives=FASTER, why="rule 1 of the recipe")),
        Saving(60, "instructions"),
        f"doit run {RECIPE} 'set=stages.tensorize.rules=[]'",
        "by a rule of the recipe; rvp.fast takes 60 instructions less",
        [facts(entry(0), entry(1, alternatives=FASTER)), facts(entry(0), entry(1, why="rule 1 of the recipe"))],
    ),
    "layout_transform": (
        of_layer(time_rules.layout_transform),
        facts(op=LAYOUT, layout="NCHW"),
        Saving(600, "instructions"),
        f"doit run {RECIPE} 'set=stages.layout.rules=[{{data: NHWC}}]'",
        "only copies NCHW to NHWC: 60 % of the instructions",
        [facts()],
    ),
    "last_activation": (
        of_layer(time_rules.last_activation),
        facts(op=Softmax()),
        Saving(600, "instructions"),
        None,
        "is the last layer: 60 % of the instructions",
        [facts()],
    ),
    "float_layer": (
        of_layer(time_rules.float_layer),
        facts(dtype="float32"),
        None,
        f"doit run {RECIPE} 'set={time_rules.CALIBRATE}'",
        "computes in float32: 60 % of the instructions",
        [facts()],
    ),
    "float layer of a quantized network": (
        of_layer(time_rules.float_layer),
        facts(dtype="float32", quantization=PTQ),
        None,
        f"doit run {RECIPE} 'set=stages.quantize.keep_float=[]'",
        "Without keep_float",
        [],
    ),
    "excluded_kernel": (
        of_layer(time_rules.excluded_kernel),
        facts(entry(0), GENERIC),
        None,
        "doit kernels rvp.relu target=rv64-rvp",
        "runs generic.relu (60 % of the instructions). Against rvp.relu: tensor z has 3 channels, not 4",
        [
            facts(),
            facts(entry(0), {**GENERIC, "alternatives": [*GENERIC["alternatives"], other("rvp.b", 200.0)]}),
            facts(entry(0), {**GENERIC, "alternatives": [other("rvp.b", None, "z is int8; this kernel is for int16")]}),
        ],
    ),
    "padded_channels": (
        of_layer(time_rules.padded_channels),
        facts(layout="NCHW16c"),
        None,
        None,
        "3 channels in NCHW16c: 52 of 64 values are padding",
        [facts(), facts(layout="NCHW3c")],
    ),
    "unpacked_weights": (
        memory_rules.unpacked_weights,
        facts(arena=WIDE),
        Saving(60, "bytes"),
        f"{RUN}tensorize.narrow_weights=false",
        "60 of the 160 bytes that are alive at the arena's peak are unpacked weights of layer 1",
        [facts(), facts(arena=SCRATCH), facts(arena=[*WIDE, buffer("x", 900, 0, 0)])],
    ),
    "scratch_at_peak": (
        memory_rules.scratch_at_peak,
        facts(*ALTERNATIVES, arena=SCRATCH),
        Saving(60, "bytes"),
        f"{RUN}tensorize.optimize_for=ram",
        "60 of the 160 bytes that are alive at the arena's peak are scratch of rvp.relu in layer 1",
        [
            facts(arena=SCRATCH),
            facts(*ALTERNATIVES, arena=WIDE),
            facts(*ALTERNATIVES, arena=[*SCRATCH, buffer("x", 900, 0, 0)]),
            with_plan(facts(*ALTERNATIVES, arena=SCRATCH), objective="ram"),
            facts(entry(0), {**ALTERNATIVES[1], "program": {"commands": []}}, arena=SCRATCH),
        ],
    ),
    "peak": (
        memory_rules.peak,
        facts(),
        None,
        None,
        "The arena is largest in layer 0 (relu y): 200 bytes are alive. x 100, y 100",
        [facts(arena=[])],
    ),
    "narrow_weights": (
        memory_rules.narrow_weights,
        facts(entry(0), PACKABLE),
        Saving(500, "bytes"),
        f"{RUN}tensorize.narrow_weights=true",
        "fit into 4 bits and are stored in 8. Packed they need 1,000 bytes of RAM more",
        [facts()],
    ),
    "int4_weights": (
        memory_rules.int4_weights,
        facts(quantization=PTQ, quantized=weights("int8")),
        Saving(20, "bytes"),
        f"doit search {RECIPE} set=stages.tensorize.narrow_weights=true",
        "40 bytes of int8 weights",
        [facts(quantized=weights("int8")), facts(quantization=INT4, quantized=weights("int8"))],
    ),
    "float_weights": (
        memory_rules.float_weights,
        facts(dtype="float32", quantized=weights("float32")),
        None,
        f"doit run {RECIPE} 'set={time_rules.CALIBRATE}'",
        "have 160 bytes",
        [facts(quantized=weights("float32")), facts(dtype="float32", quantized=weights("int8"))],
    ),
    "harness": (
        memory_rules.harness,
        facts(memory={"rom_bytes": 9000, "model_rom_bytes": 8100}),
        Saving(900, "bytes"),
        f"doit export {RECIPE} as=cmake",
        "900 of 9,000 bytes (10 %)",
        [facts(), facts(memory={"rom_bytes": None, "model_rom_bytes": None})],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_holds_where_figures_prove_it(name: str) -> None:
    rule, run, saves, command, words, others = CASES[name]
    advice = rule(run)
    assert advice is not None
    assert (advice.saves, advice.command) == (saves, command)
    assert words in advice.what
    assert [rule(each) for each in others] == [None] * len(others)


def test_every_rule_has_a_case() -> None:
    rules = (
        region_rules.slow_memory,
        *time_rules.NETWORK_RULES,
        *time_rules.LAYER_RULES,
        *memory_rules.RAM_RULES,
        *memory_rules.ROM_RULES,
    )
    assert {rule.__name__ for rule in rules} <= CASES.keys()


@pytest.mark.parametrize("command", sorted({command for *_, command, _, _ in CASES.values() if command}))
def test_a_command_is_one_of_the_recipe(command: str) -> None:
    """Its options exist, and those of the run's own command line are kept, unless it replaces them."""
    registry, project = default_registry(), project_of(INSTALLATION)
    name = "digits_ptq" if "quantize" in command or "search" in command else "digits_rvp"
    own = {"set": "stages.tensorize.optimize_for=rom,stages.simulate.inputs.seed=7"}
    loaded = load_recipe(name, root=INSTALLATION, registry=registry, variables=own)
    words = shlex.split(completed_command(command, loaded, project))
    assert words[0] == "doit" and words[1] in command_classes()
    if words[1] == "kernels":
        return
    values = dict(word.split("=", 1) for word in words[3:])
    assert words[2] == name and "stages.simulate.inputs.seed=7" in values["set"]
    assert values["set"].count("optimize_for") == 1
    assert values.pop("as", "cmake") in registry_of_forms.names()
    again = load_recipe(name, root=INSTALLATION, registry=registry, variables=values)
    assert again.recipe.stages["simulate"] == loaded.recipe.stages["simulate"]


def test_three_lines_are_of_time_ram_and_rom() -> None:
    run = with_plan(facts(entry(0), GENERIC, arena=SCRATCH, memory={"rom_bytes": 9000, "model_rom_bytes": 8100}))
    run = replace(run, plan={**run.plan, "layers": [entry(0, alternatives=FASTER), GENERIC]})
    advice = advise(run)
    assert [line["about"] for line in advice] == ["time", "time", "RAM", "ROM"]
    assert [line["about"] for line in few(advice)] == ["time", "RAM", "ROM"]
    assert advice_line(advice[0]).endswith("rvp.fast takes 60 instructions less. Up to 60 instructions less.")
    assert advice_line({**advice[0], "what": "a\x1b", "saves": None}) == r"a\x1b."
