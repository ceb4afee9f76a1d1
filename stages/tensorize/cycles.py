"""Cycles of kernels by a target's timing model, by which `optimize_for: cycles` chooses.

Instructions are known of every layer (stages.tensorize.costs); how many cycles an instruction of a kernel takes is
measured on few layers for each variant and target, as that depends on the target's timing model and its memory:

    cycles = instructions * (cycles / instructions of the variant, on the measured layers most like this one)

`doit calibrate target=NAME --cycles` writes `stages/kernels/costs/cycles/NAME.json`, NAME a core or a board:

  format, target, tools   of the file, what it was measured on, and the versions it was measured with
  timing                  digest of the timing model and of the memory's wait states (`timing_digest`)
  kernels                 kernel name -> digest of its code when it was measured
  layers                  signature -> variant -> [instructions, estimated cycles]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.kernels.digest import kernel_digest
from stages.system.json_text import parsed_json
from stages.tensorize.logarithms import exp, ln
from stages.tensorize.nearby import Nearby

if TYPE_CHECKING:
    from stages.kernels.kernel import Kernel
    from stages.targets.spec import Target

FORMAT = 1
_DIGITS = 16

Measured = Mapping[str, Mapping[str, tuple[int, int]]]
"""Signature -> variant -> instructions, cycles."""


@dataclass(frozen=True)
class CycleTable:
    """How many cycles an instruction takes; without measurements one.

    target   what it was measured on, '' for nothing
    digests  kernel name -> digest
    """

    target: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    measured: Measured = field(default_factory=dict)
    _rates: dict[str, float] = field(default_factory=dict, repr=False, compare=False)
    _nearby: list[Nearby] = field(default_factory=list, repr=False, compare=False)

    def knows(self, kernel: Kernel) -> bool:
        """Whether this very version of the kernel was measured."""
        digest = self.digests.get(kernel.name)
        return digest is not None and digest == kernel_digest(kernel)

    def outdated(self, kernel: Kernel) -> bool:
        """Whether the kernel was measured, but another version of it."""
        return kernel.name in self.digests and not self.knows(kernel)

    def exactly(self, kernel: Kernel, variant: str, text: str) -> int | None:
        """Cycles of the variant for a layer of this signature, if it was measured."""
        counts = self.measured.get(text, {}).get(variant) if self.knows(kernel) else None
        return None if counts is None else counts[1]

    def per_instruction(self, kernel: Kernel, variant: str, text: str) -> float:
        """Cycles for an instruction; of what was not measured the mean of all that was."""
        if not self.knows(kernel):
            return self._rate("")
        if not self._nearby:
            modelled = {
                layer: {
                    name: (cycles, instructions * self._rate(name), None)
                    for name, (instructions, cycles) in row.items()
                }
                for layer, row in self.measured.items()
            }
            self._nearby.append(Nearby(modelled))
        return self._rate(variant) * self._nearby[0].factor(variant, text)

    def _rate(self, variant: str) -> float:
        """The geometric mean of a variant, of its kernel if it was not measured with these parameters; '': of all."""
        if variant not in self._rates:
            kernel = variant.partition(" ")[0]
            self._rates[variant] = next(
                exp(fsum(found) / len(found))
                for found in (
                    [*self._logarithms(lambda name: name == variant)],
                    [*self._logarithms(lambda name: name.partition(" ")[0] == kernel)],
                    [*self._logarithms(lambda name: True)],
                    [0.0],
                )
                if found
            )
        return self._rates[variant]

    def _logarithms(self, is_wanted: Any) -> Iterator[float]:
        for row in self.measured.values():
            for name, (instructions, cycles) in row.items():
                if is_wanted(name) and instructions > 0 and cycles > 0:
                    yield ln(cycles / instructions)


def timing_digest(target: Target) -> str:
    """Sixteen hexadecimal digits over what cycles depend on: the timing model and the wait states of the memory."""
    model, flash = target.timing_model, target.flash
    found = [
        None if model is None else model.model_dump(mode="json", exclude={"name", "title", "source"}),
        None if flash is None else flash.model_dump(mode="json", exclude={"region", "source"}),
    ]
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def check_timed(target: Target) -> None:
    """Raises StageError, which names Firmline's targets that have one, for a target without a timing model."""
    at = ("stages", "tensorize", "optimize_for")
    if target.accelerator is not None:
        raise StageError(
            f"optimize_for: cycles is of a core alone: on {target.name} the accelerator's own model counts cycles",
            hint="speed, the default, chooses by it",
            at=at,
        )
    if target.timing_model is None:
        from stages.messages.wording import in_lines
        from stages.targets.load import load_targets

        timed = [name for name, one in load_targets().items() if one.is_timed]
        raise StageError(
            f"optimize_for: cycles needs a timing model, and none is known of {target.name}",
            hint=in_lines(f"Targets with one: {', '.join(timed)}; docs/timing.md says how a core gets its own"),
            at=at,
        )


def cycle_tables(files: Mapping[str, Path], target: Target) -> tuple[CycleTable, str]:
    """The table of the target, else its core's, of `files` (`names_of`), and a sentence if it is not of this memory.

    Raises StageError for a table that is damaged.
    """
    wanted, command = timing_digest(target), f"doit calibrate target={target.name} --cycles"
    found = [read_cycles(files[name]) for name in names_of(target) if name in files]
    for raw in found:
        if raw["timing"] == wanted:
            return _table(raw), ""
    for raw in found:
        if raw["target"] != target.name:
            said = f"cycles of an instruction are those of {raw['target']}, whose timing model or memory is another"
            return _table(raw), f"{said}: {command}"
    why = "were measured with another timing model" if found else "are not measured"
    return CycleTable(), f"cycles of {target.name}'s kernels {why}, so instructions decide: {command}"


def names_of(target: Target) -> tuple[str, ...]:
    """The names of the tables that may be the target's, the nearest first, as files of tensorize are called."""
    return tuple(dict.fromkeys((f"cycles/{target.name}", f"cycles/{target.core}")))


def read_cycles(path: Path) -> dict[str, Any]:
    """A table as it is in the file. Raises StageError for one that is damaged or of another format."""
    hint = f"write it again: doit calibrate target={path.stem} --cycles"
    try:
        raw = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StageError(f"table of cycles {path.name} cannot be read: {error}", hint=hint) from None
    keys = ("target", "tools", "timing", "kernels", "layers")
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or not all(key in raw for key in keys):
        raise StageError(f"table of cycles {path.name} is not of format {FORMAT}", hint=hint)
    for signature, row in raw["layers"].items():
        if not all(_is_counts(counts) for counts in row.values()):
            raise StageError(f"table of cycles {path.name}, {signature}: no instructions and cycles", hint=hint)
    return raw


def _is_counts(counts: Any) -> bool:
    return isinstance(counts, list) and len(counts) == 2 and all(isinstance(one, int) and one >= 0 for one in counts)


def _table(raw: Mapping[str, Any]) -> CycleTable:
    layers: Mapping[str, Mapping[str, Sequence[int]]] = raw["layers"]
    measured = {text: {name: (one[0], one[1]) for name, one in row.items()} for text, row in layers.items()}
    return CycleTable(raw["target"], raw["kernels"], measured)
