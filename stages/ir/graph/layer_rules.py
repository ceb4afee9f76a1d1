"""Ordered rules over layers, as recipes have them: which layers one is for, and what is said of the unused."""

from __future__ import annotations

from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean, of_several
from stages.support.options.strict_model import StrictModel

if TYPE_CHECKING:
    from stages.ir.graph import LayerView


def _with_operators(schema: dict[str, Any]) -> None:
    from stages.ir.graph.kinds import kernel_kinds

    schema["anyOf"] = [{"enum": sorted(kernel_kinds()), "type": "string"}, {"type": "null"}]


class LayerMatch(StrictModel):
    """Which layers a rule is for; what is left out matches everything.

    `op` is the operator as in reports (conv2d, softmax, ...), one that kernels are for, though the network need not
    have it; `name` a glob over the layer's name (the imported operator's first output tensor), `shape` the logical
    shape of the first output.
    """

    op: str | None = Field(default=None, json_schema_extra=_with_operators)
    name: str | None = None
    shape: tuple[int, ...] | None = None

    @field_validator("op")
    @classmethod
    def _known(cls, op: str | None) -> str | None:
        if op is None:
            return op
        from stages.ir.graph.kinds import is_kernel_kind, kernel_kinds

        if not is_kernel_kind(op):
            guess = did_you_mean(op.lower(), sorted(kernel_kinds())) or "; `doit kernels` lists them"
            raise ValueError(f"kernels are for no operator called {escape.quoted(op)}{guess}")
        return op

    def fits(self, view: LayerView) -> bool:
        """Whether a rule is for this layer."""
        if self.op is not None and self.op not in (view.layer.kind, view.op.op):
            return False
        return self.fits_tensor(view.layer.name, view.outputs[0].shape)

    def fits_tensor(self, name: str, shape: Sequence[int]) -> bool:
        """Whether name and shape are as asked for, whatever the operator is."""
        if self.name is not None and not fnmatchcase(name, self.name):
            return False
        return self.shape is None or self.shape == tuple(shape)

    def described(self) -> str:
        """As in a recipe: `{op: add, shape: [1, 2]}`."""
        given = self.model_dump(exclude_none=True)
        return "{" + ", ".join(f"{key}: {list(v) if isinstance(v, tuple) else v}" for key, v in given.items()) + "}"


def about_unused(what: str, rules: Sequence[str], deciding: Container[int], fitting: Container[int]) -> list[str]:
    """Sentences about rules that decide nothing, one for all of the same reason.

    `what` is a rule's kind (`tensorize rule`), `rules` how each is shown; `deciding` and `fitting` are the numbers,
    from 1, of those that decide something, and of those that match something.
    """
    unused = [(number, f"{number} ({shown})") for number, shown in enumerate(rules, 1) if number not in deciding]
    shadowed = [shown for number, shown in unused if number in fitting]
    idle = [shown for number, shown in unused if number not in fitting]
    told = []
    if shadowed:
        verb, whose = ("decides", "its") if len(shadowed) == 1 else ("decide", "their")
        which = of_several(what, shadowed)
        told.append(f"{which} {verb} nothing: an earlier rule matches all of {whose} layers")
    if idle:
        told.append(f"{of_several(what, idle)} {'matches' if len(idle) == 1 else 'match'} no layer")
    return told
