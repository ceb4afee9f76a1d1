"""Placement of layout transforms, on graphs of shapes and names."""

from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from stages.ir.operators.table import kind_of
from stages.layout.assign import Plan, assign
from stages.layout.rules import LayoutConfig, Operator, class_of

IMAGE = (1, 4, 4, 8)


class Net:
    """A graph written down as operators on tensor numbers; tensor 0 is the input."""

    def __init__(self) -> None:
        self.operators: list[Operator] = []
        self.shapes: dict[int, tuple[int, ...]] = {0: IMAGE}

    def add(self, op: str, *inputs: int, name: str = "", shape: tuple[int, ...] = IMAGE) -> int:
        index, tensor = len(self.operators), len(self.shapes)
        able = class_of(kind_of(op)) in ("transposing", "following")
        given_shape = self.shapes[inputs[0]]
        self.operators.append(Operator(index, op, name or f"{op}{index}", given_shape, 1, inputs, (tensor,), able))
        self.shapes[tensor] = shape
        return tensor

    def plan(self, *rules: dict, outputs: tuple[int, ...] = ()) -> Plan:
        config = LayoutConfig.model_validate({"rules": list(rules)})
        return assign(self.operators, self.shapes, [0], outputs or (len(self.shapes) - 1,), config)


PLANAR_DEPTHWISE = {"match": {"op": "depthwise_conv2d"}, "data": "NCHW"}


OPS = ["CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "RELU", "ADD", "SOFTMAX"]


@st.composite
def networks(draw: st.DrawFn) -> tuple[Net, tuple[int, ...]]:
    net = Net()
    for _ in range(draw(st.integers(1, 7))):
        op = draw(st.sampled_from(OPS))
        last = len(net.shapes) - 1
        inputs = [draw(st.integers(0, last)) for _ in range(2 if op == "ADD" else 1)]
        net.add(op, *inputs, shape=draw(st.sampled_from([IMAGE, IMAGE, (1, 2, 2, 16), (1, 1, 1, 8)])))
    tensors = range(1, len(net.shapes))
    return net, tuple(draw(st.sets(st.sampled_from(list(tensors)), min_size=1)))


RULES = [PLANAR_DEPTHWISE, {"match": {"op": "max_pool2d"}, "data": "NCHW"}]


@given(networks())
def test_every_reader_gets_its_layout_and_nothing_is_transformed_in_vain(case: tuple[Net, tuple[int, ...]]) -> None:
    net, outputs = case
    plan = net.plan(*RULES, outputs=outputs)
    copies = {transform.tensor: transform.target for transform in plan.transforms}
    assert len(copies) == len(plan.transforms)
    used = set()
    for operator in net.operators:
        for tensor in operator.inputs:
            wanted = plan.decisions[operator.index].data
            if wanted != plan.tensors[tensor]:
                assert copies[tensor] == wanted
                used.add(tensor)
        decision = plan.decisions[operator.index]
        assert decision.out == plan.tensors[operator.outputs[0]]
        if class_of(kind_of(operator.op)) != "transposing":
            assert decision.out == decision.data
    used |= {tensor for tensor in outputs if plan.tensors[tensor] == "NCHW"}
    assert used == set(copies)


@given(networks())
def test_no_other_choice_moves_fewer_bytes(case: tuple[Net, tuple[int, ...]]) -> None:
    """Compare with all choices for operators without a rule, by brute force."""
    net, outputs = case
    free = [operator.name for operator in net.operators if operator.op in ("RELU", "ADD")]
    best = min(
        _moved(net, net.plan(*_forced(free, layouts), *RULES, outputs=outputs))
        for layouts in product(("NHWC", "NCHW"), repeat=len(free))
    )
    assert _moved(net, net.plan(*RULES, outputs=outputs)) == best


def _forced(names: list[str], layouts: tuple[str, ...]) -> list[dict]:
    return [{"match": {"name": name}, "data": layout} for name, layout in zip(names, layouts, strict=True)]


def _moved(net: Net, plan: Plan) -> int:
    return sum(prod(net.shapes[transform.tensor]) for transform in plan.transforms if transform.moves)
