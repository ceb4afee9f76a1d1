"""Translation of each ONNX operator, one module per group."""

from collections.abc import Callable

from stages.import_model.onnx.operators import (
    convolution,
    elementwise,
    functions,
    gather,
    integer_products,
    logic,
    movement,
    normalization,
    padding,
    pools,
    positions,
    products,
    qlinear,
    quantization,
    recurrent,
    reductions,
    resize,
    softmax,
    transposed,
)
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation, Translator
from stages.import_model.onnx.values import Constant, Dequantized, TensorView

MOVES: dict[str, Callable[[Translation, Node, TensorView], TensorView | list[TensorView]]] = {
    **movement.MOVES,
    **resize.MOVES,
    **padding.MOVES,
    **pools.MOVES,
}
TRANSLATORS: dict[str, Translator] = {
    **logic.TRANSLATORS,
    **elementwise.TRANSLATORS,
    **functions.TRANSLATORS,
    **gather.TRANSLATORS,
    **normalization.TRANSLATORS,
    **positions.TRANSLATORS,
    **pools.TRANSLATORS,
    **recurrent.TRANSLATORS,
    **reductions.TRANSLATORS,
    **softmax.TRANSLATORS,
    **qlinear.TRANSLATORS,
    **integer_products.TRANSLATORS,
    **quantization.TRANSLATORS,
    **convolution.TRANSLATORS,
    **products.TRANSLATORS,
    **transposed.TRANSLATORS,
}
_SCALED = {f"{MICROSOFT}.QLinearConcat": (2, 5, 8), f"{MICROSOFT}.QLinearWhere": (1, 4)}
SCALED = {op: _SCALED.get(op, (0, 3)) for op in (*qlinear.TRANSLATORS, *_SCALED)}
"""Inputs of operators on integers behind which their scale and zero point are."""
FOLDED = ("Constant", "ConstantOfShape", "Range", "Shape", "Size")
"""Operators that are known on constants alone."""


def translate(t: Translation, node: Node) -> None:
    """Append the TFLite form of an operator of MOVES or TRANSLATORS. Raises Refused.

    An operator of both is a move if its other inputs are constants.
    """
    constants = all(isinstance(t.values[name], Constant) for name in node.inputs[1:] if name)
    if node.op in TRANSLATORS and not (node.op in MOVES and constants):
        TRANSLATORS[node.op](t, node)
        return
    value = t.value(node, 0)
    x = value.integers if isinstance(value, Dequantized) else t.computed(node, 0, integers=True)
    results = MOVES[node.op](t, node, x)
    for name, result in zip(node.outputs, results if isinstance(results, list) else [results], strict=False):
        t.bind(name, Dequantized(result) if isinstance(value, Dequantized) and result.tensor.scale else result)
