"""The recipe's layout rules, and the choice of the rule for each operator."""

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
from stages.support.messages.operator_error import operator_label
from stages.support.messages.wording import did_you_mean, of_several
from stages.support.options.strict_model import StrictModel, mistake

DataLayout = Literal["NHWC", "NCHW"]  # layouts of Relax; tensorize has others
IN_RELAX: tuple[DataLayout, ...] = ("NHWC", "NCHW")


def class_of(kind: str) -> str:
    """Return `transposing`, `following` or `bound` (`Operator.layout`), '' for an unknown kind."""
    operator = operator_of(kind)
    return operator.tensors.layout if operator is not None else ""


def _known_kinds(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"enum": kinds(), "type": "string"}, {"type": "null"}]


@dataclass(frozen=True)
class Operator:
    """An operator as layout rules see it. Shapes are logical (NHWC).

    name          of its first output
    shape         of its first data input
    groups        of a convolution, else 1; of a depthwise one the number of input channels
    renumberable  whether its axes can be renumbered for NCHW (stages.layout.relayout.renumberable)
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
        """Name in rules and reports."""
        return kind_of(self.op)

    @property
    def depthwise(self) -> bool:
        """Whether each input channel is a group."""
        return self.kind == "depthwise_conv2d" or (self.groups > 1 and self.groups == self.shape[-1])

    @property
    def label(self) -> str:
        """Name in messages."""
        return operator_label(self.index, self.op, self.name)


class Match(StrictModel):
    """Operators that a rule applies to; an omitted field matches all."""

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
        """Whether the rule applies to the operator."""
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
            wanted in (None, size) for wanted, size in zip(self.shape, operator.shape, strict=True)
        )


def _with_usual(schema: dict[str, Any]) -> None:
    written = {key: schema.pop(key) for key in ("type", "pattern")}
    schema["anyOf"] = [{"enum": list(IN_RELAX), "type": "string"}, written]


class LayoutRule(StrictModel):
    """Sets the layout `data` for operators that `match` selects."""

    match: Match = Field(default_factory=Match)
    data: Layout = Field(
        description="NHWC, NCHW, or the layout of a kernel of the target, such as NCHW16c",
        json_schema_extra=_with_usual,
    )

    @model_validator(mode="before")
    @classmethod
    def _weights_are_packed(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "kernel" in fields:
            message = "remove `kernel`: each kernel packs its own weights"
            raise mistake(message, "kernel", key=True)
        return fields

    @field_validator("data")
    @classmethod
    def _of_images(cls, data: Layout) -> Layout:
        if sorted(data.axes) != sorted("NHWC") or data.bits:
            raise ValueError(f"{escape.quoted(data)} is not an image layout such as NHWC, NCHW or NCHW16c")
        return data

    @model_validator(mode="after")
    def _possible(self) -> LayoutRule:
        op = self.match.op
        if op is not None and self.data != "NHWC" and class_of(op) == "bound":
            raise ValueError(f"{op} depends on the order of elements and can only read NHWC")
        return self


class LayoutConfig(StageConfig):
    """Layout rules, tried in order: the first match decides.

    `default` is for convolutions and pools without a rule. Without it they read NHWC, until tensorize picks the cheaper
    layout.

    Element-wise operators, concatenation, padding and the like adopt the layout of their neighbours unless a rule
    matches them.
    """

    rules: tuple[LayoutRule, ...] = ()
    default: DataLayout | None = None


@dataclass(frozen=True)
class Choice:
    """Result of the rules for one operator; `data` is None if the neighbours decide.

    why     `rule 1`, `default`, ...
    wanted  the layout from the recipe, '' without one; tensorize handles layouts that Relax does not have
    rule    the number of the deciding rule, 0 for the option `default`
    """

    data: DataLayout | None
    why: str
    wanted: str = ""
    rule: int = 0


def choose(operator: Operator, config: LayoutConfig) -> Choice:
    """Choose the layout of one operator. Raises StageError if the operator cannot read it."""
    number, rule = next(((i, r) for i, r in enumerate(config.rules, 1) if r.match.fits(operator)), (0, None))
    kind = operator.kind
    flexible = operator.renumberable and class_of(kind) in ("transposing", "following")
    wanted = "" if rule is None else str(rule.data)
    if wanted not in ("", "NHWC") and not flexible:
        # A rule without an operator applies only to operators that can read its layout.
        if rule is not None and rule.match.op is not None:
            raise StageError(
                f"layout rule {number} wants {wanted} for {operator.label}, which can only read NHWC",
                hint="Restrict the rule with a name or a shape.",
                at=("stages", "layout", "rules", number - 1, "data"),
            )
        wanted = ""
    why = f"rule {number}" if wanted else ""
    decided = (wanted, number) if wanted else ("", 0)
    data: DataLayout | None = next((layout for layout in IN_RELAX if layout == wanted), "NHWC") if wanted else None
    if data is None:
        if class_of(kind) == "transposing" and operator.renumberable:
            data, why = config.default or "NHWC", why or "default"
            decided = (config.default or "", 0)
        elif not flexible:
            data, why = "NHWC", why or "bound"
    return Choice(data, why, *decided)


def described(rule: LayoutRule) -> str:
    """Show the rule's match as in a recipe: `{op: add, name: x*}`."""
    fields = rule.match.model_dump(exclude_none=True)
    return "{" + ", ".join(f"{key}: {list(v) if isinstance(v, tuple) else v}" for key, v in fields.items()) + "}"


def warnings(operators: Sequence[Operator], config: LayoutConfig) -> list[str]:
    """Sentences about unused rules that are likely mistakes.

    Rules for a kind of operator that the network does not have are not reported: recipes of many networks share rules.
    """
    shadowed, idle = [], []
    for number in unused(operators, config):
        match = config.rules[number - 1].match
        rule = f"{number} ({described(config.rules[number - 1])})"
        if any(match.fits(operator) for operator in operators):
            shadowed.append(rule)
        elif match.model_dump(exclude_none=True, exclude={"op"}):
            idle.append(rule)
    sentences = []
    if shadowed:
        verb, whose = ("decides", "its") if len(shadowed) == 1 else ("decide", "their")
        which = of_several("layout rule", shadowed)
        sentences.append(f"{which} {verb} nothing: an earlier rule matches all of {whose} operators")
    if idle:
        sentences.append(f"{of_several('layout rule', idle)} {'matches' if len(idle) == 1 else 'match'} no operator")
    return sentences


def unused(operators: Sequence[Operator], config: LayoutConfig) -> list[int]:
    """Numbers, from 1, of the rules that decide for no operator.

    Such a rule matches no operator, or an earlier rule matches all of them.
    """
    used = set()
    for operator in operators:
        used.update([i for i, rule in enumerate(config.rules, 1) if rule.match.fits(operator)][:1])
    return [i for i in range(1, len(config.rules) + 1) if i not in used]
