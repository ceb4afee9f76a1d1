"""The recipe's layout rules: what they may say, and which of them decides for an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from stages.base import StageConfig, StageError
from stages.ir.operators.table import kind_of, kinds, operator_of
from stages.ir.tensor_layout import Layout
from stages.support.messages import escape
from stages.support.messages.operator_error import called
from stages.support.messages.wording import did_you_mean, of_several
from stages.support.options.strict_model import StrictModel, mistake

DataLayout = Literal["NHWC", "NCHW"]  # what Relax computes in; tensorize lays tensors out otherwise
IN_RELAX: tuple[DataLayout, ...] = ("NHWC", "NCHW")


def class_of(kind: str) -> str:
    """How an operator treats layouts (`Operator.layout`): transposing, following or bound; '' for an unknown kind."""
    found = operator_of(kind)
    return found.layout if found is not None else ""


def _known_kinds(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"enum": kinds(), "type": "string"}, {"type": "null"}]


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
        return called(self.index, self.op, self.name)


class Match(StrictModel):
    """Which operators a rule is for; what is not given matches all."""

    op: str | None = Field(
        default=None,
        description="operator: conv2d, depthwise_conv2d, avg_pool2d, add, ...",
        json_schema_extra=_known_kinds,
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
        if op is not None and not class_of(op):
            guess = did_you_mean(op.lower(), kinds()) or "; `doit operators` lists them"
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


def _with_usual(schema: dict[str, Any]) -> None:
    written = {key: schema.pop(key) for key in ("type", "pattern")}
    schema["anyOf"] = [{"enum": list(IN_RELAX), "type": "string"}, written]


class LayoutRule(StrictModel):
    """Operators that `match` read `data`."""

    match: Match = Field(default_factory=Match)
    data: Layout = Field(
        description="NHWC, NCHW, or what a kernel of the target reads, such as NCHW16c",
        json_schema_extra=_with_usual,
    )

    @model_validator(mode="before")
    @classmethod
    def _weights_are_packed(cls, given: Any) -> Any:
        if isinstance(given, dict) and "kernel" in given:
            message = "leave `kernel` out: each kernel packs its weights as it reads them, whatever the recipe says"
            raise mistake(message, "kernel", key=True)
        return given

    @field_validator("data")
    @classmethod
    def _of_images(cls, data: Layout) -> Layout:
        if sorted(data.axes) != sorted("NHWC") or data.bits:
            raise ValueError(f"{escape.quoted(data)} is no layout of images, such as NHWC, NCHW or NCHW16c")
        return data

    @model_validator(mode="after")
    def _possible(self) -> LayoutRule:
        op = self.match.op
        if op is not None and self.data != "NHWC" and class_of(op) == "bound":
            raise ValueError(f"{op} works on the logical order of elements and can only read NHWC")
        return self


class LayoutConfig(StageConfig):
    """`rules` are tried in order, the first that matches decides; `default` is for convolutions and pools without one.

    Without it they read NHWC, until tensorize knows what is cheaper.

    Element-wise operators, concatenation, padding and the like adopt the layout of their neighbours unless a rule
    matches them.
    """

    rules: tuple[LayoutRule, ...] = ()
    default: DataLayout | None = None


@dataclass(frozen=True)
class Choice:
    """What rules say about one operator: data is None where the neighbours decide. why: `rule 1`, `default`, ...

    wanted  the data layout that the recipe gives it, '' where it gives none; other ones than Relax has are tensorize's
    rule    the number of the rule that does, 0 for the option `default`
    """

    data: DataLayout | None
    why: str
    wanted: str = ""
    rule: int = 0


def choose(operator: Operator, config: LayoutConfig) -> Choice:
    """The layouts of one operator. Raises StageError when a rule asks for what the operator cannot have."""
    number, rule = next(((i, r) for i, r in enumerate(config.rules, 1) if r.match.fits(operator)), (0, None))
    kind = operator.kind
    flexible = operator.renumberable and class_of(kind) in ("transposing", "following")
    wanted = "" if rule is None else str(rule.data)
    if wanted not in ("", "NHWC") and not flexible:
        # A rule that names no operator is meant for those that can follow it.
        if rule is not None and rule.match.op is not None:
            raise StageError(
                f"layout rule {number} wants {wanted} for {operator.label}, which can only read NHWC",
                hint="Match it more narrowly, with a name or a shape.",
                at=("stages", "layout", "rules", number - 1, "data"),
            )
        wanted = ""
    why = f"rule {number}" if wanted else ""
    decided = (wanted, number) if wanted else ("", 0)
    data: DataLayout | None = next((each for each in IN_RELAX if each == wanted), "NHWC") if wanted else None
    if data is None:
        if class_of(kind) == "transposing" and operator.renumberable:
            data, why = config.default or "NHWC", why or "default"
            decided = (config.default or "", 0)
        elif not flexible:
            data, why = "NHWC", why or "bound"
    return Choice(data, why, *decided)


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
