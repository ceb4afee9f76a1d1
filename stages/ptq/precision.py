"""Which operators get which types: the recipe's own, and what its rules except."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stages.models.tflite_reader import ModelInfo, OperatorInfo
from stages.operators.table import OPERATORS
from stages.options.layer_rules import LayerMatch, about_unused
from stages.options.quantization import QuantizeOptions

# LiteRT's reference has 4-bit weights for depthwise convolutions too, the quantizer has not.
NARROW = ("CONV_2D", "FULLY_CONNECTED")


@dataclass(frozen=True)
class Precision:
    """Bits of an operator's activations and weights."""

    activations: int
    weights: int


Precisions = dict[int, Precision | None]  # by operator; None: it stays float


def precisions(info: ModelInfo, options: QuantizeOptions) -> tuple[Precisions, list[str]]:
    """What each operator is to have, and sentences on rules that no operator fits or that decide nothing."""
    activations, weights = int(options.activations.removeprefix("int")), int(options.weights.removeprefix("int"))
    found: Precisions = {}
    deciding: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    fitting: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    for operator in info.operators:
        own = weights if operator.op in NARROW else 8
        found[operator.index] = Precision(activations, own)
        for name, made in (("keep_int16", Precision(16, own)), ("keep_float", None)):
            matching = [number for number, rule in enumerate(getattr(options, name), 1) if fits(rule, operator, info)]
            fitting[name].update(matching)
            if matching:
                deciding[name].add(matching[0])
                found[operator.index] = made
    notes = []
    for name in deciding:
        shown = [rule.described() for rule in getattr(options, name)]
        notes += about_unused(f"{name} rule", shown, deciding[name], fitting[name])
    return found, notes


def fits(rule: LayerMatch, operator: OperatorInfo, info: ModelInfo) -> bool:
    """Whether a rule is for this operator: its kind, the name and the shape of its first output."""
    output = info.tensors[operator.outputs[0]]
    if rule.op is not None and rule.op != kind(operator):
        return False
    return rule.fits_tensor(output.name, output.shape)


def kind(operator: OperatorInfo) -> str:
    """What rules and reports call an operator: `conv2d`."""
    return OPERATORS[operator.op].kind if operator.op in OPERATORS else operator.op.lower()


def described(found: Sequence[Precision | None]) -> str:
    """`int8 x 7, float x 1`, for the log."""
    names = ["float" if one is None else f"int{one.activations} (weights int{one.weights})" for one in found]
    return ", ".join(f"{name} x {names.count(name)}" for name in dict.fromkeys(names))
