"""Which kernel a layer gets, and what a rule that cannot be followed is told."""

import pytest
from pydantic import ValidationError

from stages.backends.kernels import registry
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import LayerView
from stages.ir.graph.layer_rules import LayerMatch
from stages.ir.models.resolve import resolve
from stages.ir.models.spec import OpModel
from stages.tensorize import TensorizeConfig, TensorizeRule
from stages.tensorize.choices import choose_kernels
from stages.tensorize.costs import Costs, signature
from stages.tensorize.pass_context import PassContext
from stages.tensorize.select import choose, unused_rules
from tests.conformance.draw import Draw
from tests.conformance.operators import fully_connected
from tests.support.emitted import target_named
from tests.support.integer import integer_graph
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph
from tests.support.ne16_target import ne16_target

KERNELS = [PlainGemm(), MiniGemm()]


def view(batch: int = 8) -> LayerView:
    graph = mini_graph(batch)
    return graph.view(graph.layers[0])


def table(counts: dict[str, int]) -> Costs:
    """Counts of the mini layer."""
    return Costs({signature(view()): counts})


def rule(kernel: str, match: LayerMatch | None = None, **params: object) -> TensorizeRule:
    return TensorizeRule(match=match or LayerMatch(), kernel=kernel, params=params)


class Tuned(MiniGemm):
    name = "mini.tuned"

    def candidates(self, view: LayerView, target: Target) -> tuple[MiniParams, ...]:
        return (MiniParams(), MiniParams(rows=2), MiniParams(rows=8))


def test_the_cheapest_of_a_kernels_candidates_wins_and_the_others_are_listed() -> None:
    costs = table({"mini.tuned rows=2": 10, "mini.tuned rows=8": 20, "mini.tuned rows=4": 15})
    choice = choose(view(), target_named("host"), [PlainGemm(), Tuned()], [], costs)
    assert (choice.params.rows, choice.cost, choice.cost_source) == (2, 10, "counted")
    assert [(a.kernel, a.params["rows"], a.cost, a.cost_source) for a in choice.alternatives] == [
        ("mini.plain", 4, 8 * 8 * 12 * 6, "estimated"),
        ("mini.tuned", 4, 15, "counted"),
        ("mini.tuned", 8, 20, "counted"),
    ]


def test_a_rule_without_parameters_gets_the_kernels_cheapest_and_with_them_exactly_those() -> None:
    costs = table({"mini.tuned rows=2": 10, "mini.plain rows=4": 1})
    kernels = [PlainGemm(), Tuned()]
    assert choose(view(), target_named("host"), kernels, [rule("mini.tuned")], costs).params.rows == 2
    assert choose(view(), target_named("host"), kernels, [rule("mini.tuned", rows=4)], costs).params.rows == 4


def test_the_first_matching_rule_decides() -> None:
    rules = [
        rule("mini.gemm", LayerMatch(op="conv2d")),
        rule("mini.plain", LayerMatch(name="dense_*")),
        rule("mini.gemm"),
    ]
    assert choose(view(), target_named("host"), KERNELS, rules, Costs()).why == "rule 2 of the recipe"


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (LayerMatch(), True),
        (LayerMatch(op="fully_connected"), True),
        (LayerMatch(op="conv2d"), False),
        (LayerMatch(name="*ense_0"), True),
        (LayerMatch(name="ense_0"), False),
        (LayerMatch(shape=(8, 6)), True),
        (LayerMatch(op="fully_connected", shape=(8, 7)), False),
    ],
)
def test_what_a_rule_matches(match: LayerMatch, expected: bool) -> None:
    assert match.fits(view()) is expected


@pytest.mark.parametrize(
    ("op", "told"),
    [
        ("conv2dd", "no operator called 'conv2dd' has a kernel; did you mean 'conv2d'?"),
        ("CONV_2D", "did you mean 'conv2d'?"),
        ("zzz", "no operator called 'zzz' has a kernel; `doit kernels` lists them"),
        ("float", "no operator called 'float'"),  # lowered by TVM: no rule decides for it
    ],
)
def test_a_rule_for_an_operator_that_no_network_has_is_refused(op: str, told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        LayerMatch(op=op)
    assert told in str(caught.value)


def failure(*args: object) -> str:
    with pytest.raises(StageError) as caught:
        choose(*args)  # type: ignore[arg-type]
    lines = str(caught.value).splitlines()
    assert 1 <= len(lines) <= 5
    return str(caught.value)


class Pool(MiniGemm):
    name = "mini.pool"
    ops = frozenset({"max_pool2d"})


@pytest.mark.parametrize(
    ("batch", "rules", "says"),
    [
        (3, [], "layer 0 (fully_connected dense_0, input 3x12 int8)"),
        (3, [], "mini.gemm: 3 rows are not a multiple of 4"),
        (8, [rule("mini.gem")], "has no kernel mini.gem, which a tensorize rule names; did you mean 'mini.gemm'?"),
        (3, [rule("mini.gemm")], "3 rows are not a multiple of 4"),
        (8, [rule("mini.gemm", nr=4)], "Parameters of mini.gemm: rows"),
        (8, [rule("mini.pool")], "computes max_pool2d, not layer 0"),
    ],
)
def test_what_no_kernel_or_not_the_rules_kernel_can_compute(batch: int, rules: list[TensorizeRule], says: str) -> None:
    assert says in failure(view(batch), target_named("host"), [*KERNELS, Pool()], rules, Costs())


def test_a_rule_with_the_kernel_for_layers_that_no_multiplier_rounds() -> None:
    layer = fully_connected.fully_connected(Draw(1), 1, 16, 4, rounding="single")
    kernels = list(registry.kernels(("generic",)).values())
    taken = choose(layer, target_named("host"), kernels, [], Costs())
    assert "generic.stepped_fully_connected" not in [taken.kernel.name, *(other.kernel for other in taken.alternatives)]
    with pytest.raises(
        StageError, match=r"computes fully_connected whose scales no 32-bit multiplier rounds as LiteRT does, not"
    ):
        choose(layer, target_named("host"), kernels, [rule("generic.stepped_fully_connected")], Costs())
    looked_up = choose(fully_connected.stepped(layer), target_named("host"), kernels, [], Costs())
    assert looked_up.kernel.name == "generic.stepped_fully_connected"
    assert [other.kernel for other in looked_up.alternatives] == ["generic.fully_connected"]


ENGINE = ne16_target()


def engine_says(layer: LayerView, *rules: TensorizeRule) -> str:
    setting = PassContext.of(ENGINE, TensorizeConfig(rules=rules), registry.kernels_of(ENGINE).values())
    return failure(layer, ENGINE, setting.kernels, list(rules), Costs())


def test_an_engine_that_reads_uint8_says_what_else_keeps_it_from_a_layer_on_int8() -> None:
    graph = integer_graph(
        resolve(OpModel(op="conv2d", shape=(8, 8, 4), out_channels=4, kernel=(3, 3), dilation=(2, 2)))
    )
    layer = graph.view(graph.layers[0])
    assert "dilat" in engine_says(layer, rule("ne16"))
    chosen = choose_kernels(graph, PassContext.of(ENGINE, TensorizeConfig(), registry.kernels_of(ENGINE).values()))
    (refused,) = [one for one in chosen.choices[0].alternatives if one.kernel == "ne16"]
    assert "dilat" in refused.reason


def test_a_rule_for_an_engine_with_a_parameter_or_a_kernel_that_it_does_not_have() -> None:
    layer = fully_connected.fully_connected(Draw(1), 1, 16, 4)
    assert "unknown key 'mr'" in engine_says(layer, rule("ne16", mr=4))
    told = engine_says(layer, rule("ne16.conv2d"))
    assert "rv32-rvp with ne16 has no kernel" in told and "did you mean 'ne16'?" in told


def test_a_rule_that_decides_nothing_for_a_float_layer_is_reported() -> None:
    of_bytes, of_floats = rule("mini.gemm", LayerMatch(op="fully_connected")), rule("ne16", LayerMatch(op="conv2d"))
    graph = integer_graph(resolve(OpModel(op="conv2d", shape=(8, 8, 4), out_channels=4, kernel=(3, 3))))
    convolution = graph.view(graph.layers[0])
    idle = "tensorize rule 2 ({op: conv2d} -> ne16) matches no layer"
    assert unused_rules([of_bytes, of_floats], [view()]) == ((2,), [idle])
    unused, (told,) = unused_rules([of_bytes, of_floats], [view()], [convolution])
    assert (unused, told) == ((2,), f"{idle} on integers; TVM's own code computes layers on float32")
