"""The data on which rules of advice decide, and their result."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from stages.ir.graph import Graph, Tensor
from stages.ir.operators.variables import Assign, Read
from stages.report.board import counted
from stages.report.html.memory import short_name

#: Stands in a command for the recipe of the run with its target, model and overrides. The runner replaces it.
RECIPE = "RECIPE"


_LAYER: Mapping[str, Any] = {
    "kernel": "",
    "why": "",
    "cost": None,
    "cost_source": "",
    "steps": (),
    "program": None,
    "packable": None,
    "constants": {},
}
_ALTERNATIVE = {"kernel": "", "cost": None, "cost_source": "", "reason": "", "flips": 0}


@dataclass(frozen=True)
class Saving:
    """Upper bound of a change's saving in bytes, instructions or cycles, by the run."""

    amount: int
    unit: str


@dataclass(frozen=True)
class Advice:
    """One line of advice.

    about    time, RAM or ROM
    layer    index of the layer, or None
    what     a sentence with the figures that prove it
    saves    None if the figures do not bound it
    command  the command that tries it, or None
    """

    about: str
    layer: int | None
    what: str
    saves: Saving | None = None
    command: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of report.json."""
        return asdict(self)


@dataclass(frozen=True)
class Facts:
    """Results of a run that the rules of the advice read.

    report     report.json without its advice
    plan       plan.json
    computed   tensorize's graph, without constants
    quantized  quantize's graph, with constants
    regions    memory regions of the target by name, as declared: speed, holds, …
    ruled      (region, part) of blocks that a memory rule placed; a part is arena or weights
    """

    report: Mapping[str, Any]
    plan: Mapping[str, Any]
    computed: Graph
    quantized: Graph
    regions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ruled: frozenset[tuple[str, str]] = frozenset()

    @property
    def unit(self) -> str:
        """The unit of measured layers: instructions, cycles or ticks."""
        return counted(self.report)

    @cached_property
    def total(self) -> int:
        """Measured instructions or cycles of an inference; 0 if the target counts none."""
        return self.report["instructions"]["total"] or 0

    @cached_property
    def can_calibrate(self) -> bool:
        """Whether `mode: calibrate` takes the network: float32, without variables."""
        floats = set(self.report["legalize"]["tensors"]) == {"float32"} and not self.report["quantization"]
        return floats and not any(isinstance(layer.op, Read | Assign) for layer in self.computed.layers)

    def measured(self, index: int) -> int:
        """Return the measured instructions or cycles of a layer."""
        return next((layer["instructions"] or 0 for layer in self.report["layers"] if layer["index"] == index), 0)

    def share(self, index: int) -> float:
        """Return the layer's share of the inference, 0 to 1."""
        return self.measured(index) / self.total if self.total else 0.0

    def saving(self, index: int) -> Saving:
        """Return all that a layer takes, as a saving."""
        return Saving(self.measured(index), self.unit)

    @cached_property
    def layers(self) -> dict[int, Mapping[str, Any]]:
        """Entries of plan.json by layer; a plug-in's plan may lack fields."""
        return {
            entry["index"]: {
                **_LAYER,
                **entry,
                "alternatives": [{**_ALTERNATIVE, **other} for other in entry.get("alternatives", ())],
            }
            for entry in self.plan["layers"]
        }

    def layer_plan(self, index: int) -> Mapping[str, Any]:
        """Return a layer's entry in plan.json."""
        return self.layers.get(index, {**_LAYER, "alternatives": []})

    def inputs(self, index: int) -> list[Tensor]:
        """Return the activations that a layer reads."""
        return [self.computed.tensors[name] for name in self.computed.layers[index].inputs]

    def outputs(self, index: int) -> list[Tensor]:
        """Return the tensors that a layer writes."""
        return [self.computed.tensors[name] for name in self.computed.layers[index].outputs]

    def title(self, index: int) -> str:
        """Return `layer 3 (conv2d stack/conv)`: index, operator and name of a layer."""
        layer = next(layer for layer in self.report["layers"] if layer["index"] == index)
        op, name = layer["op"], short_name(layer["name"])
        return f"layer {index} ({name if op in name else f'{op} {name}'})"

    def expensive(self, count: int) -> list[int]:
        """Return the layers that take most time.

        By estimated cycles if there are any, else by measured counts.
        """
        key = "estimated_cycles" if self.report.get("estimated_cycles") else "instructions"
        known = {layer.index for layer in self.computed.layers}
        costly = [layer for layer in self.report["layers"] if layer[key] and layer["index"] in known]
        return [layer["index"] for layer in sorted(costly, key=lambda layer: -layer[key])[:count]]


def run_with(assignment: str) -> str:
    """Return the command that repeats the run with another value of the recipe."""
    return shlex.join(["doit", "run", RECIPE, f"set={assignment}"])


def percent(share: float) -> str:
    """Return `3.4 %`, `75 %`."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
