"""Functions of one tensor that TFLite lacks, composed of float32 operators.

Between integers, each is a table.
"""

from collections.abc import Callable

import numpy as np

from stages.import_model.onnx.operators.tables import lower_to_table
from stages.import_model.onnx.translation import MICROSOFT, Node, Translation, Translator
from stages.import_model.onnx.values import TensorView
from stages.ir.models.tflite_writer import Tensor

Operand = Tensor | float
_HUGE = 1e38
_TABLES = {"ABS": "AbsOptions", "DIV": "DivOptions", "EXP": "ExpOptions", "NEG": "NegOptions"}
# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: erf to 1.5e-7.
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_ERF_P = 0.3275911


class Steps:
    """Appends float32 operators; numbers among the operands become constants."""

    def __init__(self, t: Translation, name: str) -> None:
        self.t, self.name = t, name

    def __call__(self, op: str, *parts: Operand) -> Tensor:
        """Append an operator of tensors that broadcast."""
        tensors = self._tensors(parts)
        method = getattr(self.t.builder, op.lower(), None) if len(tensors) == 2 else None
        if method is not None:
            result: Tensor = method(*tensors, name=f"{self.name}/{op.lower()}")
            return result
        table = _TABLES.get(op, "MaximumMinimumOptions" if op in ("MAXIMUM", "MINIMUM") else "")
        shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
        return self.t.builder.emit(op, tensors, shape, None, f"{self.name}/{op.lower()}", table)

    def truth(self, op: str, *parts: Operand) -> Tensor:
        """Append a comparison with a bool result."""
        tensors = self._tensors(parts)
        shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
        result = self.t.builder.tensor(f"{self.name}/{op.lower()}", shape, "bool")
        self.t.builder.operator(op, tensors, [result])
        return result

    def number(self, x: Tensor) -> Tensor:
        """Append a cast from bool to 0.0 or 1.0."""
        result = self.t.builder.tensor(f"{self.name}/number", x.shape, "float32")
        self.t.builder.operator("CAST", [x], [result])
        return result

    def _tensors(self, parts: tuple[Operand, ...]) -> list[Tensor]:
        return [
            part
            if isinstance(part, Tensor)
            else self.t.builder.constant(f"{self.name}/constant", np.array([part], np.float32))
            for part in parts
        ]


Formula = Callable[[Steps, Tensor, Node], Tensor]


def _composed(formula: Formula) -> Translator:
    def translate(t: Translation, node: Node) -> None:
        if lower_to_table(t, node):
            return
        x = t.computed(node, 0)
        result = formula(Steps(t, node.outputs[0]), x.tensor, node)
        t.bind(node.outputs[0], TensorView(result, x.base, x.shape, x.order))

    return translate


def reciprocal(s: Steps, x: Tensor, node: Node) -> Tensor:
    """1 / x."""
    return s("DIV", 1.0, x)


def sign(s: Steps, x: Tensor, node: Node) -> Tensor:
    """(x > 0) - (x < 0)."""
    above, below = (s.number(s.truth(op, x, 0.0)) for op in ("GREATER", "LESS"))
    return s("SUB", above, below)


def softplus(s: Steps, x: Tensor, node: Node) -> Tensor:
    """log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    small = s("EXP", s("NEG", s("ABS", x)))
    return s("ADD", s("RELU", x), s("LOG", s("ADD", small, 1.0)))


def softsign(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x / (|x| + 1)."""
    return s("DIV", x, s("ADD", s("ABS", x), 1.0))


def mish(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x * tanh(softplus(x))."""
    return s("MUL", x, s("TANH", softplus(s, x, node)))


def _exponential(s: Steps, x: Tensor, alpha: float, within: float = 1.0) -> Tensor:
    """max(x, 0) + alpha * (exp(min(x, 0) / within) - 1)."""
    low = s("MINIMUM", x, 0.0)
    low = s("MUL", low, 1.0 / within) if within != 1.0 else low
    return s("ADD", s("RELU", x), s("MUL", s("ELU", low), alpha))


def elu(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x for x > 0, alpha * (exp(x) - 1) below."""
    alpha = float(node.attributes.get("alpha", 1.0))
    return s("ELU", x) if alpha == 1.0 else _exponential(s, x, alpha)


def celu(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x for x > 0, alpha * (exp(x / alpha) - 1) below."""
    alpha = float(node.attributes.get("alpha", 1.0))
    return _exponential(s, x, alpha, alpha)


def selu(s: Steps, x: Tensor, node: Node) -> Tensor:
    """gamma * elu(x)."""
    alpha = float(node.attributes.get("alpha", 1.67326319217681884765625))
    return s("MUL", _exponential(s, x, alpha), float(node.attributes.get("gamma", 1.05070102214813232421875)))


def swish(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x * sigmoid(alpha * x)."""
    alpha = float(node.attributes.get("alpha", 1.0))
    return s("MUL", x, s("LOGISTIC", x if alpha == 1.0 else s("MUL", x, alpha)))


def quick_gelu(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x * sigmoid(alpha * x)."""
    return s("MUL", x, s("LOGISTIC", s("MUL", x, float(node.attributes.get("alpha", 1.702)))))


def shrink(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x - bias above lambd, x + bias below -lambd, 0 in between."""
    bound, bias = (float(node.attributes.get(key, default)) for key, default in (("lambd", 0.5), ("bias", 0.0)))
    above, below = s.number(s.truth("GREATER", x, bound)), s.number(s.truth("LESS", x, -bound))
    return s("ADD", s("MUL", s("SUB", x, bias), above), s("MUL", s("ADD", x, bias), below))


def thresholded_relu(s: Steps, x: Tensor, node: Node) -> Tensor:
    """x where x > alpha, else 0."""
    return s("MUL", x, s.number(s.truth("GREATER", x, float(node.attributes.get("alpha", 1.0)))))


def erf(s: Steps, x: Tensor, node: Node) -> Tensor:
    """sign(x) * (1 - (a1 t + ... + a5 t^5) exp(-x^2)) with t = 1 / (1 + p |x|)."""
    t = s("DIV", 1.0, s("ADD", s("MUL", s("ABS", x), _ERF_P), 1.0))
    total = s("MUL", t, _ERF[-1])
    for factor in _ERF[-2::-1]:
        total = s("MUL", s("ADD", total, factor), t)
    far = s("SUB", 1.0, s("MUL", total, s("EXP", s("NEG", s("MUL", x, x)))))
    unit = s("MINIMUM", s("MAXIMUM", s("MUL", x, _HUGE), -1.0), 1.0)
    return s("MUL", unit, far)


TRANSLATORS: dict[str, Translator] = {
    "Celu": _composed(celu),
    "Elu": _composed(elu),
    "Erf": _composed(erf),
    "Mish": _composed(mish),
    f"{MICROSOFT}.QuickGelu": _composed(quick_gelu),
    "Reciprocal": _composed(reciprocal),
    "Selu": _composed(selu),
    "Shrink": _composed(shrink),
    "Sign": _composed(sign),
    "Softplus": _composed(softplus),
    "Softsign": _composed(softsign),
    "Swish": _composed(swish),
    "ThresholdedRelu": _composed(thresholded_relu),
}
