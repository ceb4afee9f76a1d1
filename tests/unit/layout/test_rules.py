"""The rule that decides for an operator, and errors of invalid rules."""

import pytest
from pydantic import ValidationError

from stages.base import StageError
from stages.layout.rules import LayoutConfig, Operator, choose, unused, warnings


def operator(op: str, name: str = "net/x", shape: tuple[int, ...] = (1, 8, 8, 4), groups: int = 1) -> Operator:
    return Operator(0, op, name, shape, groups, (0,), (1,), renumberable=len(shape) == 4)


def config(*rules: dict, default: str = "NHWC") -> LayoutConfig:
    return LayoutConfig.model_validate({"rules": list(rules), "default": default})


CONV = operator("CONV_2D", "block_1/Conv_1/Relu6")
DEPTHWISE = operator("DEPTHWISE_CONV_2D", groups=4)


def test_first_rule_that_matches_decides() -> None:
    rules = config(
        {"match": {"op": "conv2d", "name": "*/Conv_1/*"}, "data": "NCHW"}, {"match": {"op": "conv2d"}, "data": "NHWC"}
    )
    assert (choose(CONV, rules).data, choose(CONV, rules).why) == ("NCHW", "rule 1")
    other = operator("CONV_2D", "block_2/Conv_2/Relu6")
    assert (choose(other, rules).data, choose(other, rules).why) == ("NHWC", "rule 2")


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"shape": [1, 8, 8, 4]}, True),
        ({"shape": [1, None, None, 4]}, True),
        ({"shape": [1, None, None, 3]}, False),
        ({"shape": [8, 8, 4]}, False),
        ({"groups": 4}, True),
        ({"groups": 1}, False),
        ({"groups": "depthwise"}, True),
        ({"name": "net/?"}, True),
        ({"name": "NET/*"}, False),
        ({"op": "conv2d"}, False),
    ],
)
def test_match(match: dict, fits: bool) -> None:
    assert (choose(DEPTHWISE, config({"match": match, "data": "NCHW"})).data == "NCHW") is fits


def test_a_grouped_convolution_with_one_channel_each_is_depthwise_too() -> None:
    rules = config({"match": {"groups": "depthwise"}, "data": "NCHW"})
    assert choose(operator("CONV_2D", groups=4), rules).data == "NCHW"
    assert choose(operator("CONV_2D", groups=2), rules).data == "NHWC"
    assert choose(operator("CONV_2D", shape=(1, 8, 8, 2), groups=2), rules).data == "NCHW"


def test_rule_without_operator_leaves_out_those_that_cannot() -> None:
    rules = config({"data": "NCHW"})
    assert choose(operator("ADD"), rules).data == "NCHW"
    softmax = choose(operator("SOFTMAX"), rules)
    assert (softmax.data, softmax.why) == ("NHWC", "bound")


def test_operators_without_a_rule_follow_their_neighbours() -> None:
    assert choose(operator("ADD"), config()).data is None
    # ... unless their axes cannot be renumbered.
    assert choose(operator("ADD", shape=(1, 8)), config()).data == "NHWC"


def test_rule_for_an_operator_that_cannot_follow_it_here_is_an_error() -> None:
    rules = config({"match": {"op": "add"}, "data": "NCHW"})
    with pytest.raises(StageError, match=r"layout rule 1 wants NCHW for operator 0 \(ADD\) 'net/x'"):
        choose(operator("ADD", shape=(1, 8)), rules)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"match": {"op": "conv"}, "data": "NCHW"}, "no operator is called 'conv'; did you mean 'conv2d'?"),
        ({"match": {"op": "CONV_2D"}, "data": "NCHW"}, "did you mean 'conv2d'?"),
        ({"match": {"op": "softmax"}, "data": "NCHW"}, "softmax depends on the order of elements"),
        ({"match": {"op": "conv2d"}}, "Field required"),
        ({"match": {"op": "conv2d"}, "data": "NHWC", "kernel": "OHWI"}, "remove `kernel`: each kernel packs its"),
        ({"match": {"op": "conv2d"}, "kernel": "OHWI4i:4"}, "remove `kernel`: each kernel packs its own weights"),
        ({"match": {"op": "conv2d"}, "data": "nhwc"}, "'nhwc' is not a layout: axes are capitals"),
        ({"match": {"op": "conv2d"}, "data": "OHWI"}, "'OHWI' is not an image layout such as NHWC, NCHW or NCHW16c"),
        ({"match": {"op": "conv2d"}, "data": "NHWC:4"}, "'NHWC:4' is not an image layout"),
        ({"match": {"op": "softmax"}, "data": "NCHW16c"}, "softmax depends on the order of elements"),
        ({"match": {"opp": "conv2d"}, "data": "NHWC"}, "opp"),
    ],
)
def test_wrong_rules_are_refused_when_the_recipe_is_read(rule: dict, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        config(rule)
    assert message in str(caught.value)


def test_a_rule_that_matches_nothing_is_reported_unless_it_is_for_a_kind_the_network_has_not() -> None:
    rules = LayoutConfig.model_validate(
        {
            "rules": [
                {"match": {"op": "conv2d"}, "data": "NHWC"},
                {"match": {"op": "conv2d", "shape": list(CONV.shape)}, "data": "NCHW"},
                {"match": {"op": "tanh"}, "data": "NHWC"},
                {"match": {"op": "add", "name": "nothing*"}, "data": "NCHW"},
            ]
        }
    )
    assert unused([CONV], rules) == [2, 3, 4]
    shadowed = f"layout rule 2 ({{op: conv2d, shape: {list(CONV.shape)}}})"
    assert warnings([CONV], rules) == [
        f"{shadowed} decides nothing: an earlier rule matches all of its operators",
        "layout rule 4 ({op: add, name: nothing*}) matches no operator",
    ]
