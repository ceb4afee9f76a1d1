"""What becomes of each operator of ONNX: one module per family."""

from __future__ import annotations

from collections.abc import Callable

from stages.import_model.onnx.operators import (
    elementwise,
    movement,
    normalization,
    products,
    qlinear,
    quantization,
    reductions,
    transposed,
    whole,
    windows,
)
from stages.import_model.onnx.translation import Node, Translation
from stages.import_model.onnx.values import Held, Real

MOVES: dict[str, Callable[[Translation, Node, Held], Held | list[Held]]] = {**movement.MOVES, **windows.MOVES}
TRANSLATORS: dict[str, Callable[[Translation, Node], None]] = {
    **elementwise.TRANSLATORS,
    **normalization.TRANSLATORS,
    **reductions.TRANSLATORS,
    **qlinear.TRANSLATORS,
    **whole.TRANSLATORS,
    **quantization.TRANSLATORS,
    **windows.TRANSLATORS,
    **products.TRANSLATORS,
    **transposed.TRANSLATORS,
}
SCALED = {op: (2, 5, 8) if op.endswith("QLinearConcat") else (0, 3) for op in qlinear.TRANSLATORS}
"""Inputs of operators on integers behind which their scale and zero point are."""
FOLDED = ("Cast", "Constant", "ConstantOfShape", "Expand", "Range", "Shape", "Size", "Tile", "Where")
"""Operators that are known on constants alone."""


def translate(t: Translation, node: Node) -> None:
    """Appends what the operator stands for; raises Refused. It is one of MOVES or TRANSLATORS."""
    if node.op in TRANSLATORS:
        TRANSLATORS[node.op](t, node)
        return
    value = t.value(node, 0)
    x = value.held if isinstance(value, Real) else t.held(node, 0, integers=True)
    made = MOVES[node.op](t, node, x)
    for name, one in zip(node.outputs, made if isinstance(made, list) else [made], strict=False):
        t.bind(name, Real(one) if isinstance(value, Real) and one.tensor.scale else one)
