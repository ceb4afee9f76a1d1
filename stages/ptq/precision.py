"""Which operators get which types: the recipe's own, and what its rules except."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stages.ir.graph.layer_rules import LayerMatch, about_unused
from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo
from stages.ir.operators.table import OPERATORS
from stages.quantize.options import QuantizeOptions
from stages.support.messages.wording import several

# LiteRT's reference has 4-bit weights for depthwise convolutions too, the quantizer has not.
NARROW = ("CONV_2D", "FULLY_CONNECTED")


@dataclass(frozen=True)
class Precision:
    """Bits of an operator's activations and weights."""

    activations: int
    weights: int


Precisions = dict[int, Precision | None]  # by operator; None: it stays float


def precisions(info: ModelInfo, options: QuantizeOptions) -> tuple[Precisions, list[str]]:
    """What each operator is to have, as far as it has such a form; sentences on what has none, and on unused rules."""
    usual = Precision(int(options.activations.removeprefix("int")), int(options.weights.removeprefix("int")))
    found: Precisions = {}
    deciding: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    fitting: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    narrower: Counter[str] = Counter()
    for operator in info.operators:
        wanted: Precision | None = usual
        for name, made in (("keep_int16", Precision(16, usual.weights)), ("keep_float", None)):
            matching = [number for number, rule in enumerate(getattr(options, name), 1) if fits(rule, operator, info)]
            fitting[name].update(matching)
            if matching:
                deciding[name].add(matching[0])
                wanted = made
        if wanted is not None and wanted.activations == 16 and not _computes(operator, "int16"):
            narrower[operator.op] += 1
            wanted = Precision(8, wanted.weights)
        if wanted is not None and not (operator.op in NARROW and _has_weights(operator, wanted)):
            wanted = Precision(wanted.activations, 8)
        found[operator.index] = wanted
    notes = []
    for name in deciding:
        shown = [rule.described() for rule in getattr(options, name)]
        notes += about_unused(f"{name} rule", shown, deciding[name], fitting[name])
    if narrower:
        counted = several([f"{count} x {op}" for op, count in sorted(narrower.items())])
        notes.append(f"{counted}: there is no form in 16 bits, they get int8")
    return found, notes


def _computes(operator: OperatorInfo, dtype: str) -> bool:
    """Whether Firmline has the operator for data of a type; one that it does not know import will refuse."""
    return operator.op not in OPERATORS or dtype in OPERATORS[operator.op].types


def _has_weights(operator: OperatorInfo, wanted: Precision) -> bool:
    """Whether it has weights of so few bits, for data of so many."""
    weights, data = f"int{wanted.weights}", f"int{wanted.activations}"
    return operator.op in OPERATORS and weights in OPERATORS[operator.op].narrow.get(data, ())


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
