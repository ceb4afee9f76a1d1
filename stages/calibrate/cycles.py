"""Measuring how many cycles an instruction of each kernel takes on a target: `doit calibrate target=NAME --cycles`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.calibrate.measured_entries import Entries, stale_kernels, without
from stages.kernels.digest import kernel_digest
from stages.tensorize.costs import kind_of
from stages.tensorize.cycles import FORMAT, read_cycles, timing_digest

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.targets.spec import Target

_LAYERS = 8  # for each variant and kind of layer
_LONG = 400_000  # instructions, of a layer that tells no more than a shorter one


def sample(cases: Iterable[Case]) -> list[Case]:
    """Of each variant and kind of layer a few cases, from those that take least to those that take most."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.variant, kind_of(case.signature)), []).append(case)
    found: list[Case] = []
    for _, group in sorted(groups.items()):
        ordered = sorted(group, key=lambda case: (case.estimate or 0.0, case.signature))
        short = [case for case in ordered if (case.estimate or 0.0) <= _LONG] or ordered[:1]
        last = len(short) - 1
        places = sorted({round(number * last / (_LAYERS - 1)) for number in range(_LAYERS)})
        found += [short[place] for place in places]
    return found


@dataclass
class CyclesFile(Entries):
    """The content of a table file (stages.tensorize.cycles).

    stale   names of kernels that were measured in another version, or are no more; their entries are not in `layers`
    """

    target: str
    timing: str
    tools: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    layers: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    stale: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, target: Target) -> CyclesFile:
        """What counts of the table in `path`: nothing without the file, or if its timing is another. StageError."""
        timing = timing_digest(target)
        if not path.is_file() or (raw := read_cycles(path))["timing"] != timing:
            return cls(target.name, timing)
        stale = stale_kernels(raw["kernels"], target)
        kernels = {name: digest for name, digest in raw["kernels"].items() if name not in stale}
        return cls(target.name, timing, dict(raw["tools"]), kernels, without(raw["layers"], stale), stale)

    def add(self, case: Case, instructions: int, cycles: int) -> None:
        """Enters a measurement."""
        self.layers.setdefault(case.signature, {})[case.variant] = [instructions, cycles]
        self.kernels[case.kernel.name] = kernel_digest(case.kernel)

    def text(self) -> str:
        """The file: sorted, one line for each kernel and layer."""
        head = {"format": FORMAT, "target": self.target, "timing": self.timing, "tools": self.tools}
        lines = [f" {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in head.items()]
        parts: dict[str, Mapping[str, Any]] = {"kernels": self.kernels, "layers": self.layers}
        for key, rows in parts.items():
            inner = ",\n".join(
                f"  {json.dumps(name)}: {json.dumps(rows[name], sort_keys=True)}" for name in sorted(rows)
            )
            lines.append(f' "{key}": {{\n{inner}\n }}' if rows else f' "{key}": {{}}')
        return "{\n" + ",\n".join(lines) + "\n}\n"
