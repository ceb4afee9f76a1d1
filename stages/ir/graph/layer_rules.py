"""Ordered rules over layers in recipes: matching, and notes about unused rules."""

from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, field_validator

from stages.ir.graph import LayerView
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean, of_several
from stages.support.options.strict_model import StrictModel


def _with_operators(schema: dict[str, Any]) -> None:
    from stages.ir.graph.kinds import kernel_kinds

    schema["anyOf"] = [{"enum": sorted(kernel_kinds()), "type": "string"}, {"type": "null"}]


class LayerMatch(StrictModel):
    """Condition of a rule: the layers that it applies to. A missing key matches everything.

    op     operator as in reports (conv2d, softmax, ...), one that has kernels; the network need not contain it
    name   glob over the layer's name (the imported operator's first output tensor)
    shape  logical shape of the first output
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
            raise ValueError(f"no operator called {escape.quoted(op)} has a kernel{guess}")
        return op

    def fits(self, view: LayerView) -> bool:
        """Whether the rule applies to this layer."""
        if self.op is not None and self.op not in (view.layer.kind, view.op.op):
            return False
        return self.fits_tensor(view.layer.name, view.outputs[0].shape)

    def fits_tensor(self, name: str, shape: Sequence[int]) -> bool:
        """Whether name and shape match, for any operator."""
        if self.name is not None and not fnmatchcase(name, self.name):
            return False
        return self.shape is None or self.shape == tuple(shape)

    def described(self) -> str:
        """Return the match as in a recipe: `{op: add, shape: [1, 2]}`."""
        options = self.model_dump(exclude_none=True)
        return "{" + ", ".join(f"{key}: {list(v) if isinstance(v, tuple) else v}" for key, v in options.items()) + "}"


def about_unused(what: str, rules: Sequence[str], deciding: Container[int], fitting: Container[int]) -> list[str]:
    """Return sentences about rules without effect, one per reason.

    what      kind of rule (`tensorize rule`)
    rules     text of each rule
    deciding  numbers, from 1, of the rules that decide something
    fitting   numbers of the rules that match something
    """
    unused = [(number, f"{number} ({shown})") for number, shown in enumerate(rules, 1) if number not in deciding]
    shadowed = [shown for number, shown in unused if number in fitting]
    idle = [shown for number, shown in unused if number not in fitting]
    notes = []
    if shadowed:
        verb, owner = ("decides", "its") if len(shadowed) == 1 else ("decide", "their")
        which = of_several(what, shadowed)
        notes.append(f"{which} {verb} nothing: an earlier rule matches all of {owner} layers")
    if idle:
        notes.append(f"{of_several(what, idle)} {'matches' if len(idle) == 1 else 'match'} no layer")
    return notes
