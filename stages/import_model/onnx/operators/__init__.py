"""What becomes of each operator of ONNX: one module per family."""

from __future__ import annotations

from collections.abc import Callable

from stages.import_model.onnx.operators import (
    choices,
    elementwise,
    functions,
    images,
    lookup,
    movement,
    normalization,
    padding,
    places,
    pools,
    products,
    qlinear,
    quantization,
    reductions,
    transposed,
    whole,
    windows,
)
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation
from stages.import_model.onnx.values import Held, Real, Stored

MOVES: dict[str, Callable[[Translation, Node, Held], Held | list[Held]]] = {
    **movement.MOVES,
    **images.MOVES,
    **padding.MOVES,
    **pools.MOVES,
}
TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {
    **choices.TRANSLATORS,
    **elementwise.TRANSLATORS,
    **functions.TRANSLATORS,
    **lookup.TRANSLATORS,
    **normalization.TRANSLATORS,
    **places.TRANSLATORS,
    **pools.TRANSLATORS,
    **reductions.TRANSLATORS,
    **qlinear.TRANSLATORS,
    **whole.TRANSLATORS,
    **quantization.TRANSLATORS,
    **windows.TRANSLATORS,
    **products.TRANSLATORS,
    **transposed.TRANSLATORS,
}
_SCALED = {f"{MICROSOFT}.QLinearConcat": (2, 5, 8), f"{MICROSOFT}.QLinearWhere": (1, 4)}
SCALED = {op: _SCALED.get(op, (0, 3)) for op in (*qlinear.TRANSLATORS, *_SCALED)}
"""Inputs of operators on integers behind which their scale and zero point are."""
FOLDED = ("Constant", "ConstantOfShape", "Range", "Shape", "Size")
"""Operators that are known on constants alone."""


def translate(t: Translation, node: Node) -> None:
    """Appends what the operator stands for; raises Refused. It is one of MOVES or TRANSLATORS.

    One of both moves by constants, and is translated where it reads other computed tensors than the first.
    """
    constants = all(isinstance(t.values[name], Stored) for name in node.inputs[1:] if name)
    if node.op in TRANSLATORS and not (node.op in MOVES and constants):
        TRANSLATORS[node.op](t, node)
        return
    value = t.value(node, 0)
    x = value.held if isinstance(value, Real) else t.held(node, 0, integers=True)
    made = MOVES[node.op](t, node, x)
    for name, one in zip(node.outputs, made if isinstance(made, list) else [made], strict=False):
        t.bind(name, Real(one) if isinstance(value, Real) and one.tensor.scale else one)
