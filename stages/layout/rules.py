"""The recipe's layout rules: what they may say, and which of them decides for an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field, field_validator, model_validator

from stages import escape
from stages.base import StageConfig, StageError
from stages.strict_model import StrictModel
from stages.wording import did_you_mean, of_several

DataLayout = Literal["NHWC", "NCHW"]
KernelLayout = Literal["OHWI", "HWIO", "OIHW", "HWC"]

# Rules and reports name an operator as the integer graph does, where that is not the schema's name in lower case:
_KINDS = {"AVERAGE_POOL_2D": "avg_pool2d", "MAX_POOL_2D": "max_pool2d", "CONV_2D": "conv2d",
          "DEPTHWISE_CONV_2D": "depthwise_conv2d"}  # fmt: skip

# Operators whose implementation walks the output anyway and may write it in another layout than it reads. All others
# write what they read.
TRANSPOSING = frozenset({"conv2d", "depthwise_conv2d", "avg_pool2d", "max_pool2d"})

# Operators that compute the same in both layouts, once their axes are renumbered; the rest wants NHWC.
FOLLOWING = frozenset({
    "abs", "add", "concatenation", "cos", "dequantize", "div", "elu", "exp", "floor", "hard_swish", "leaky_relu", "log",
    "logistic", "maximum", "mean", "minimum", "mul", "neg", "pad", "padv2", "quantize", "relu", "relu6", "relu_n1_to_1",
    "resize_nearest_neighbor", "rsqrt", "sin", "slice", "split", "sqrt", "square", "squared_difference",
    "strided_slice", "sub", "sum", "tanh",
})  # fmt: skip

KERNELS: dict[str, tuple[KernelLayout, ...]] = {
    "conv2d": ("OHWI", "HWIO", "OIHW"),
    "depthwise_conv2d": ("HWC", "OIHW"),
}
_USUAL_KERNEL: dict[tuple[str, str], KernelLayout] = {
    ("conv2d", "NHWC"): "OHWI",
    ("conv2d", "NCHW"): "OIHW",
    ("depthwise_conv2d", "NHWC"): "HWC",
    ("depthwise_conv2d", "NCHW"): "OIHW",
}
BOUND = frozenset({"fully_connected", "reshape", "softmax", "squeeze", "transpose", "log_softmax", "l2_normalization",
                   "space_to_depth", "depth_to_space", "expand_dims", "resize_bilinear", "prelu", "split_v",
                   "reduce_max", "reduce_min"})  # fmt: skip


def kind_of(op: str) -> str:
    """The name in rules and reports of an operator of the TFLite schema: CONV_2D is conv2d."""
    return _KINDS.get(op, op.lower())


@dataclass(frozen=True)
class Operator:
    """An operator as rules see it. Shapes are logical (NHWC).

    name is that of its first output; shape that of its first data input; groups is 1 unless it is a convolution, and
    the number of input channels for a depthwise one. renumberable tells that its axes can be renumbered for NCHW
    (stages.layout.relayout.renumberable).
    """

    index: int
    op: str
    name: str
    shape: tuple[int, ...]
    groups: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    renumberable: bool

    @property
    def kind(self) -> str:
        return kind_of(self.op)

    @property
    def depthwise(self) -> bool:
        return self.kind == "depthwise_conv2d" or (self.groups > 1 and self.groups == self.shape[-1])

    @property
    def label(self) -> str:
        return f"operator {self.index} ({self.op}) {escape.quoted(self.name)}"


class Match(StrictModel):
    """Which operators a rule is for; what is not given matches all."""

    op: str | None = Field(
        default=None,
        description="operator: conv2d, depthwise_conv2d, avg_pool2d, add, ...",
        json_schema_extra={
            "anyOf": [{"enum": [*sorted(TRANSPOSING | FOLLOWING | BOUND)], "type": "string"}, {"type": "null"}]
        },
    )
    name: str | None = Field(default=None, description="glob on the name of the operator's first output")
    shape: tuple[int | None, ...] | None = Field(
        default=None, description="shape of the first input, NHWC; null matches any size"
    )
    groups: int | Literal["depthwise"] | None = Field(
        default=None, description="groups of a convolution, or `depthwise`: one group for each input channel"
    )

    @field_validator("op")
    @classmethod
    def _known(cls, op: str | None) -> str | None:
        known = TRANSPOSING | FOLLOWING | BOUND
        if op is not None and op not in known:
            guess = did_you_mean(op.lower(), sorted(known)) or f"; known are {', '.join(sorted(known))}"
            raise ValueError(f"no operator is called {escape.quoted(op)}{guess}")
        return op

    def fits(self, operator: Operator) -> bool:
        if self.op is not None and self.op != operator.kind:
            return False
        if self.name is not None and not fnmatchcase(operator.name, self.name):
            return False
        if self.groups is not None and not (
            operator.depthwise if self.groups == "depthwise" else self.groups == operator.groups
        ):
            return False
        if self.shape is None:
            return True
        return len(self.shape) == len(operator.shape) and all(
            want in (None, have) for want, have in zip(self.shape, operator.shape, strict=True)
        )


class LayoutRule(StrictModel):
    """Operators that `match` read `data` and keep their weights as `kernel`."""

    match: Match = Field(default_factory=Match)
    data: DataLayout | None = None
    kernel: KernelLayout | None = None

    @model_validator(mode="after")
    def _possible(self) -> LayoutRule:
        op = self.match.op
        if self.data is None and self.kernel is None:
            raise ValueError("a rule gives `data`, `kernel` or both")
        if op is not None and self.data == "NCHW" and op in BOUND:
            raise ValueError(f"{op} works on the logical order of elements and can only read NHWC")
        if op is not None and self.kernel is not None and self.kernel not in KERNELS.get(op, ()):
            possible = f"one of {', '.join(KERNELS[op])}" if op in KERNELS else "no kernel layout"
            raise ValueError(f"{op} has {possible}, not {self.kernel}")
        return self


class LayoutConfig(StageConfig):
    """`rules` are tried in order, the first that matches decides; `default` is for convolutions and pools without one.

    Element-wise operators, concatenation, padding and the like adopt the layout of their neighbours unless a rule
    matches them.
    """

    rules: tuple[LayoutRule, ...] = ()
    default: DataLayout = "NHWC"


@dataclass(frozen=True)
class Choice:
    """What rules say about one operator: data is None where the neighbours decide. why: `rule 1`, `default`, ..."""

    data: DataLayout | None
    kernel: KernelLayout | None
    why: str


def choose(operator: Operator, config: LayoutConfig) -> Choice:
    """The layouts of one operator. Raises StageError when a rule asks for what the operator cannot have."""
    number, rule = next(((i, r) for i, r in enumerate(config.rules, 1) if r.match.fits(operator)), (0, None))
    kind = operator.kind
    flexible = operator.renumberable and kind in TRANSPOSING | FOLLOWING
    data = rule.data if rule is not None else None
    if data == "NCHW" and not flexible:
        # A rule that names no operator is meant for those that can follow it.
        if rule is not None and rule.match.op is not None:
            raise StageError(
                f"layout rule {number} wants NCHW for {operator.label}, which can only read NHWC",
                hint="Match it more narrowly, with a name or a shape.",
                at=("stages", "layout", "rules", number - 1, "data"),
            )
        data = None
    why = f"rule {number}" if rule is not None and (data or rule.kernel) else ""
    if data is None:
        if kind in TRANSPOSING and operator.renumberable:
            data, why = config.default, why or "default"
        elif not flexible:
            data, why = "NHWC", why or "bound"
    if kind not in KERNELS:
        return Choice(data, None, why)
    kernel = rule.kernel if rule is not None and rule.kernel in KERNELS[kind] else None
    if rule is not None and rule.kernel is not None and kernel is None and rule.match.op is not None:
        raise StageError(
            f"layout rule {number}: {kind} has no kernel layout {rule.kernel}",
            at=("stages", "layout", "rules", number - 1, "kernel"),
        )
    return Choice(data, kernel or _USUAL_KERNEL[kind, data or "NHWC"], why)


def described(rule: LayoutRule) -> str:
    """What the rule matches, as in a recipe: `{op: add, name: x*}`."""
    given = rule.match.model_dump(exclude_none=True)
    return "{" + ", ".join(f"{key}: {list(v) if isinstance(v, tuple) else v}" for key, v in given.items()) + "}"


def warnings(operators: Sequence[Operator], config: LayoutConfig) -> list[str]:
    """Sentences about unused rules that are likely mistakes, one for all rules of the same fate.

    A rule for a kind of operator that the network does not have is none: recipes of many networks share rules.
    """
    shadowed, idle = [], []
    for number in unused(operators, config):
        match = config.rules[number - 1].match
        rule = f"{number} ({described(config.rules[number - 1])})"
        if any(match.fits(operator) for operator in operators):
            shadowed.append(rule)
        elif match.model_dump(exclude_none=True, exclude={"op"}):
            idle.append(rule)
    found = []
    if shadowed:
        verb, whose = ("decides", "its") if len(shadowed) == 1 else ("decide", "their")
        which = of_several("layout rule", shadowed)
        found.append(f"{which} {verb} nothing: an earlier rule matches all of {whose} operators")
    if idle:
        found.append(f"{of_several('layout rule', idle)} {'matches' if len(idle) == 1 else 'match'} no operator")
    return found


def unused(operators: Sequence[Operator], config: LayoutConfig) -> list[int]:
    """By number, from 1, the rules that decide for no operator: none matches, or an earlier rule always does."""
    used = set()
    for operator in operators:
        used.update([i for i, rule in enumerate(config.rules, 1) if rule.match.fits(operator)][:1])
    return [i for i in range(1, len(config.rules) + 1) if i not in used]
