"""The precision of each operator: the recipe's types, and the exceptions of its rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stages.ir.graph.layer_rules import LayerMatch, about_unused
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.table import OPERATORS
from stages.quantize.options import QuantizeOptions
from stages.support.messages.wording import several

# LiteRT's reference also supports 4-bit depthwise weights; the quantizer does not.
NARROW = ("CONV_2D", "FULLY_CONNECTED")


@dataclass(frozen=True)
class Precision:
    """Bits of an operator's activations and weights."""

    activations: int
    weights: int


Precisions = dict[int, Precision | None]  # by operator; None: it stays float


def precisions(info: ModelInfo, options: QuantizeOptions) -> tuple[Precisions, list[str]]:
    """Return the precision of each operator, and notes about missing kernels and unused rules.

    Operators without an int16 or narrow-weight form get int8.
    """
    default = Precision(int(options.activations.removeprefix("int")), int(options.weights.removeprefix("int")))
    by_operator: Precisions = {}
    deciding_rules: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    matching_rules: dict[str, set[int]] = {"keep_float": set(), "keep_int16": set()}
    without_int16: Counter[str] = Counter()
    for operator in info.operators:
        wanted: Precision | None = default
        for name, exception in (("keep_int16", Precision(16, default.weights)), ("keep_float", None)):
            rule_numbers = [
                number for number, rule in enumerate(getattr(options, name), 1) if fits(rule, operator, info)
            ]
            matching_rules[name].update(rule_numbers)
            if rule_numbers:
                deciding_rules[name].add(rule_numbers[0])
                wanted = exception
        if wanted is not None and wanted.activations == 16 and not _computes(operator, "int16"):
            without_int16[operator.op] += 1
            wanted = Precision(8, wanted.weights)
        if wanted is not None and not (operator.op in NARROW and _has_weights(operator, wanted)):
            wanted = Precision(wanted.activations, 8)
        by_operator[operator.index] = wanted
    notes = []
    for name in deciding_rules:
        rule_names = [rule.described() for rule in getattr(options, name)]
        notes += about_unused(f"{name} rule", rule_names, deciding_rules[name], matching_rules[name])
    if without_int16:
        counted = several([f"{count} x {op}" for op, count in sorted(without_int16.items())])
        notes.append(f"{counted}: no int16 form, int8 is used")
    return by_operator, notes


def _computes(operator: OperatorInfo, dtype: str) -> bool:
    """Return whether Firmline has the operator for a type; import reports unknown operators."""
    return operator.op not in OPERATORS or dtype in OPERATORS[operator.op].tensors.types


def _has_weights(operator: OperatorInfo, wanted: Precision) -> bool:
    """Return whether the operator supports weights with so few bits."""
    weights, data = f"int{wanted.weights}", f"int{wanted.activations}"
    return operator.op in OPERATORS and weights in OPERATORS[operator.op].weights.narrow.get(data, ())


def fits(rule: LayerMatch, operator: OperatorInfo, info: ModelInfo) -> bool:
    """Return whether a rule matches an operator's kind, and its first output's name and shape."""
    output = info.tensors[operator.outputs[0]]
    if rule.op is not None and rule.op != kind(operator):
        return False
    return rule.fits_tensor(output.name, output.shape)


def kind(operator: OperatorInfo) -> str:
    """Return an operator's name in rules and reports: `conv2d`."""
    return OPERATORS[operator.op].kind if operator.op in OPERATORS else operator.op.lower()


def described(precisions: Sequence[Precision | None]) -> str:
    """Return `int8 x 7, float x 1`, for the log."""
    names = [
        "float" if precision is None else f"int{precision.activations} (weights int{precision.weights})"
        for precision in precisions
    ]
    return ", ".join(f"{name} x {names.count(name)}" for name in dict.fromkeys(names))
