"""The table of a target: which entries are there, which are missing or stale, and writing it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.calibrate.fit import ENOUGH, Measurement, fit
from stages.calibrate.measured_entries import WORK, Entries, stale_kernels, without
from stages.kernels import registry
from stages.kernels.digest import kernel_digest
from stages.tensorize.costs import FORMAT, QUANTITIES, kind_of, known_of, of_kind, quantities, read_file

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.targets.spec import Target


@dataclass
class Table(Entries):
    """The content of a table file (stages.tensorize.costs).

    close   layers whose choice of kernels was least certain when they were drawn (stages.calibrate.close)
    stale   names of kernels that were measured in another version, or are no more; their entries are not in `layers`
    former  the rows of the file, with those entries
    """

    target: str
    tools: dict[str, str] = field(default_factory=dict)
    layers: dict[str, dict[str, Any]] = field(default_factory=dict)
    close: list[dict[str, Any]] = field(default_factory=list)
    stale: tuple[str, ...] = ()
    former: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, target: Target) -> Table:
        """What counts of the table in `path`; an empty one without the file. Raises StageError as `read_file`."""
        if not path.is_file():
            return cls(target.core)
        raw = read_file(path)
        stale = stale_kernels(raw["kernels"], target)
        kept = without(raw["layers"], stale)
        return cls(target.core, dict(raw["tools"]), kept, list(raw.get("close", ())), stale, raw["layers"])

    def describe(self, cases: Sequence[Case]) -> None:
        """Enters the quantities of layers that have measurements, which may be of a time when there were others."""
        for case in cases:
            if case.signature in self.layers:
                self.layers[case.signature][WORK] = _work(case)

    def add(self, case: Case, instructions: int) -> None:
        """Enters a measurement."""
        row = self.layers.setdefault(case.signature, {WORK: _work(case)})
        row[case.variant] = [instructions, None if case.estimate is None else round(case.estimate)]

    def instructions_of(self, case: Case) -> int | None:
        """What the case took when it was measured, in whatever version of its kernel; None if it was not."""
        entry = self.former.get(case.signature, {}).get(case.variant)
        return None if entry is None else int(entry[0])

    def text(self, target: Target) -> str:
        """The file: sorted, one line for each kernel, fit and layer."""
        variants = sorted({name for row in self.layers.values() for name in row if name != WORK})
        kernels = registry.kernels_of(target)
        used = sorted({name.split(" ")[0] for name in variants})
        fits = {key: made for name in variants for key, made in self._fits(name)}
        parts: dict[str, dict[str, Any]] = {
            "kernels": {name: kernel_digest(kernels[name]) for name in used},
            "fits": dict(sorted(fits.items())),
            "layers": {name: _sorted(self.layers[name]) for name in sorted(self.layers)},
        }
        head = {"format": FORMAT, "target": self.target, "tools": dict(sorted(self.tools.items()))}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        if self.close:
            inner = ",\n".join(f"  {json.dumps(options)}" for options in self.close)
            lines.append(f' "close": [\n{inner}\n ]')
        for key, rows in parts.items():
            inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
            lines.append(f' "{key}": {{\n{inner}\n }}')
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def _fits(self, variant: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The variant's model, and one for each kind of layer where it computes several and has measured enough.

        Transforms into blocks tell nothing of other layers.
        """
        rows = {signature: row for signature, row in sorted(self.layers.items()) if variant in row}
        kinds = sorted({kind_of(signature) for signature in rows})
        groups = {
            variant: [row for signature, row in rows.items() if " " not in kind_of(signature)] or [*rows.values()]
        }
        for kind in kinds if len(kinds) > 1 else ():
            groups[of_kind(variant, kind)] = [row for signature, row in rows.items() if kind_of(signature) == kind]
        for key, group in groups.items():
            made = fit([Measurement(row[variant][0], known_of(row[WORK], row[variant][1])) for row in group])
            if made is not None and (key == variant or len(group) >= ENOUGH):
                yield key, {"layers": made.layers, "error": made.error, "factors": dict(sorted(made.factors.items()))}


def _work(case: Case) -> dict[str, int]:
    return {name: int(value) for name, value in quantities(case.view, None).items() if name != "call"}


def _sorted(row: Mapping[str, Any]) -> dict[str, Any]:
    """`work` first, as numbers in the order of QUANTITIES, then the variants."""
    return {
        WORK: [row[WORK][name] for name in QUANTITIES if name in row[WORK]],
        **{name: row[name] for name in sorted(row) if name != WORK},
    }
