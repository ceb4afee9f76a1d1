"""Measures what tensorize weighs for one network: every kernel for every layer, in every form and layout it may get.

What is measured decides what channels, forms and layouts cost least, and so which layers there are: it goes on until
all that is chosen by these measurements has been measured itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError, no_progress
from stages.calibrate.cases import Case, cases_of_views
from stages.calibrate.measure import measure
from stages.calibrate.measured_entries import Entries, stale_kernels, without
from stages.kernels import registry
from stages.kernels.digest import kernel_digest
from stages.system.asides import write_whole
from stages.tensorize.build import decide, reduced
from stages.tensorize.costs import CostTable
from stages.tensorize.cycles import timing_digest
from stages.tensorize.forms import with_cheapest_forms, with_other_forms
from stages.tensorize.found import found
from stages.tensorize.layouts import weighed
from stages.tensorize.setting import Setting
from stages.tensorize.tuning import FORMAT, TIMING, entry_of, read_targets, sound_targets

if TYPE_CHECKING:
    from stages.calibrate.side_work import Begin
    from stages.compile.config import CompileConfig
    from stages.graph import Graph
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeConfig

_ROUNDS = 6
_OFTEN = 32  # measurements after which the file is written, so that an interrupted run has them


@dataclass
class Tuning(Entries):
    """What a tuning file has of one target (stages.tensorize.tuning.entry_of).

    tools   what the figures depend on beside the kernels: versions, and the options of the compiler
    stale   kernels that were measured in another version, or are no more; their figures are not in `layers`
    others  a line for each of `tools` that the file has otherwise; none of its figures are in `layers` then
    """

    path: Path
    entry: str
    tools: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)
    layers: dict[str, dict[str, int]] = field(default_factory=dict)
    stale: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, path: Path, target: Target, tools: Mapping[str, str], *, in_cycles: bool = False, again: bool = False
    ) -> Tuning:
        """What counts of the file with these tools; an empty one where nothing is of the target.

        `in_cycles`: of the target's timing model, instead of instructions. Raises StageError for a file that is
        damaged; `again`, all of it to be measured, takes that as an empty one.
        """
        entry = entry_of(target, in_cycles=in_cycles)
        tools = {**tools, TIMING: timing_digest(target)} if in_cycles else tools
        raw = (sound_targets if again else read_targets)(path).get(entry)
        if raw is None:
            return cls(path, entry, dict(tools))
        if raw["tools"] != tools:
            return cls(path, entry, dict(tools), others=tuple(_others(raw["tools"], tools)))
        stale = stale_kernels(raw["kernels"], target)
        kernels = {name: digest for name, digest in raw["kernels"].items() if name not in stale}
        return cls(path, entry, dict(tools), kernels, without(raw["layers"], stale), stale)

    @property
    def table(self) -> CostTable:
        """As tensorize reads it."""
        return CostTable(dict(self.kernels), {signature: dict(row) for signature, row in self.layers.items()})

    def add(self, case: Case, count: int) -> None:
        """Enters a measurement."""
        self.layers.setdefault(case.signature, {})[case.variant] = count
        self.kernels[case.kernel.name] = kernel_digest(case.kernel)

    def write(self) -> None:
        """Writes it over what the file has of the target, or over a damaged file: sorted, one line for each layer.

        Raises StageError where it cannot be written.
        """
        targets = sound_targets(self.path)
        own = {"tools": self.tools, "kernels": self.kernels, "layers": self.layers}
        parts = ",\n".join(_of_entry(name, found) for name, found in sorted({**targets, self.entry: own}.items()))
        try:
            write_whole(self.path, f'{{\n "format": {FORMAT},\n "targets": {{\n{parts}\n }}\n}}\n')
        except OSError as error:
            raise StageError(f"{self.path.name} cannot be written: {error.strerror}") from None


def _others(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *now}):
        old, new = before.get(name, "not told"), now.get(name, "none")
        if old != new:
            yield f"{name}: {old} when it was measured, now {new}"


def _of_entry(name: str, found: Mapping[str, Any]) -> str:
    lines = [f"   {json.dumps(key)}: {json.dumps(found[key], sort_keys=True)}" for key in ("tools", "kernels")]
    rows = (
        f"    {json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(found["layers"].items())
    )
    layers = ",\n".join(rows)
    lines.append(f'   "layers": {{\n{layers}\n   }}' if layers else '   "layers": {}')
    joined = ",\n".join(lines)
    return f"  {json.dumps(name)}: {{\n{joined}\n  }}"


@dataclass(frozen=True)
class Tuned:
    """What a tuning comes to.

    measured      cases that were measured now
    lost          signatures of layers in the file that the network does not have, in any form
    before, now   instructions (or cycles) of all layers with the choices made without and with the tuning, as far as
                  both are measured
    changes       a line for each layer that is computed otherwise
    """

    measured: int
    lost: tuple[str, ...]
    before: int
    now: int
    changes: tuple[str, ...]


def setting_for(target: Target, config: TensorizeConfig, costs: CostTable | None, tuning: Tuning | None) -> Setting:
    """What tensorize would be told with these measurements over the core's table."""
    table = costs or CostTable()
    known = replace(table, tuned=tuning.table) if tuning is not None else table
    return Setting.of(target, config, registry.kernels_of(target).values(), known)


def wanted(graph: Graph, setting: Setting) -> Iterator[Case]:
    """All that tensorize weighs for the graph of quantize, as far as the target's memory holds it."""
    base, _ = reduced(graph, setting)
    forms = (base, with_other_forms(base), with_cheapest_forms(base, setting))
    views = (view for form in forms for view in weighed(form, setting))
    yield from cases_of_views(views, setting.target)


def tune(
    graph: Graph,
    target: Target,
    config: TensorizeConfig,
    costs: CostTable | None,
    tuning: Tuning,
    *,
    options: CompileConfig | None = None,
    again: bool = False,
    progress: Callable[..., None] = no_progress,
    begin: Begin | None = None,
) -> Tuned:
    """Measures what `tuning` lacks (with `again` all of it), and keeps it in its file as it becomes known.

    `options` are those that the recipe compiles with; what is stale goes from the file. `begin` as of `measure`.
    Raises StageError for a kernel that computes something else than the integer reference; what was measured is kept.
    """
    if again:
        tuning.kernels, tuning.layers = {}, {}
    done, seen = 0, set[str]()
    for _ in range(_ROUNDS):
        cases = list(wanted(graph, setting_for(target, config, costs, tuning)))
        seen |= {case.signature for case in cases}
        missing = [case for case in cases if not tuning.has(case)]
        if not missing:
            break
        try:
            in_cycles = config.optimize_for == "cycles"
            counts = measure(missing, target, options=options, in_cycles=in_cycles, progress=progress, begin=begin)
            for case, count in counts:
                tuning.add(case, count)
                done += 1
                if done % _OFTEN == 0:
                    tuning.write()
        finally:
            if done:
                tuning.write()
    if not done and (tuning.stale or tuning.others or (again and tuning.path.is_file())):
        tuning.write()
    lost = tuple(sorted(tuning.layers.keys() - seen))
    return Tuned(done, lost, *compared(graph, target, config, costs, tuning))


def compared(
    graph: Graph, target: Target, config: TensorizeConfig, costs: CostTable | None, tuning: Tuning
) -> tuple[int, int, tuple[str, ...]]:
    """What is chosen without and with a tuning takes, by its figures, and what is computed otherwise then."""
    setting = setting_for(target, config, costs, tuning)
    before, _ = decide(graph, setting_for(target, config, costs, None))
    now, _ = decide(graph, setting)
    difference = found(before, now, setting)
    changes = [
        f"{layer.name}: {layer.before or 'not there'} -> {layer.now or 'not there'}"
        for layer in difference.layers
        if layer.before != layer.now
    ]
    return difference.before, difference.now, tuple(changes)


def missing_of(
    graph: Graph, target: Target, config: TensorizeConfig, costs: CostTable | None, tuning: Tuning
) -> tuple[list[Case], tuple[str, ...]]:
    """The cases that a tuning lacks, and the signatures of layers that it has and the network has not."""
    cases = list(wanted(graph, setting_for(target, config, costs, tuning)))
    seen = {case.signature for case in cases}
    return [case for case in cases if not tuning.has(case)], tuple(sorted(tuning.layers.keys() - seen))
