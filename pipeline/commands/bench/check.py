"""Compare figures with docs/bench.json: report growth of more than 1 %, and stale figures.

A stored figure is stale if today's is much lower or other kernels were measured. A stale figure hides a regression.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import Record, unit_of
from pipeline.commands.bench.run import Outcome
from pipeline.commands.exit_codes import FAILED, PENDING
from stages.support.messages import escape

TOLERANCE = 0.01
_FELL = 0.05  # a figure that fell by more makes the stored one stale
# Report a layer only if it changed its network by this share: not 28 instructions that become 30.
_LAYER_SHARE = 0.001
_LAYERS_NAMED = 3
_MEMORY = (("ram_bytes", "RAM"), ("rom_bytes", "ROM"))


@dataclass
class Verdict:
    """The result of a check: `worse` makes it fail. Each entry has one to four lines."""

    worse: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether any figure is worse."""
        return bool(self.worse)

    @property
    def exit_code(self) -> int:
        """FAILED if a figure is worse, PENDING if only stored figures are stale, else 0."""
        return FAILED if self.failed else PENDING if self.stale else 0

    def print(self, renew: str) -> None:
        """Print all entries, the worse ones last; `renew` is the command that updates the figures."""
        labels = (("note", self.notes), ("better", self.better), ("STALE", self.stale), ("WORSE", self.worse))
        for label, lines in labels:
            for line in lines:
                print(f"{label}: {escape.message(line)}")
        if self.stale:
            print(f"some stored figures are outdated; update them with {renew}")


@dataclass(frozen=True)
class _LayerChange:
    """A layer's instructions before (0: new layer) and now (0: removed layer)."""

    index: int
    op: str
    name: str
    before: int
    now: int

    def __str__(self) -> str:
        return f"layer {self.index} ({self.op}) {self.name!r}: {change(self.before, self.now)}"


def check(outcomes: Iterable[Outcome], stored: Mapping[tuple[str, str], Record]) -> Verdict:
    """Compare each case with its stored record. A failed case is always worse."""
    verdict = Verdict()
    for outcome in outcomes:
        title, now, before = outcome.case.title, outcome.record, stored.get(outcome.case.id)
        if outcome.failed:
            verdict.worse.append(f"{title}: {outcome.first_line}")
        elif now is None:
            verdict.notes.append(f"{title}: skipped, {outcome.first_line}")
        elif before is None:
            verdict.notes.append(f"{title}: not stored yet; run `doit bench --update`")
            _limit(outcome.case, now, verdict)
        elif before.sha256 != now.sha256:
            verdict.worse.append(f"{title}: the stored figures are for another model file; run `doit bench --update`")
        else:
            _compare(title, before, now, verdict)
            _limit(outcome.case, now, verdict)
            verdict.notes += [line for line in _other_tools(before, now) if line not in verdict.notes]
    return verdict


def limit_error(case: Case, record: Record) -> str:
    """Return a line if a case exceeds the suite's limit, else ''."""
    count, limit = record.instructions, case.at_most
    if limit is None or count is None or count <= limit:
        return ""
    return f"{case.title}: {count:,} {unit_of(record)}, the limit is {limit:,}"


def _limit(case: Case, now: Record, verdict: Verdict) -> None:
    if line := limit_error(case, now):
        verdict.worse.append(line)


def _other_tools(before: Record, now: Record) -> Iterator[str]:
    """Yield a line per tool of another version: it can be the reason of a change."""
    for name in sorted(before.tools.keys() & now.tools.keys()):
        if before.tools[name] != now.tools[name]:
            yield f"{name} {now.tools[name]}; the stored figures were measured with {before.tools[name]}"


def _compare(title: str, before: Record, now: Record, verdict: Verdict) -> None:
    _compare_instructions(title, before, now, verdict)
    for key, label in _MEMORY:
        old, new = before.memory.get(key), now.memory.get(key)
        if old is None or new is None:
            continue
        line = f"{title}: {label} {change(old, new)} bytes"
        if _rose(old, new):
            verdict.worse.append(line)
        elif _rose(new, old):
            verdict.better.append(line)
            if fell(old, new):
                verdict.stale.append(line)


def _compare_instructions(title: str, before: Record, now: Record, verdict: Verdict) -> None:
    old, new = before.instructions, now.instructions
    if old is None or new is None:
        if old != new:
            verdict.worse.append(f"{title}: instructions were {old}, are {new}")
        return
    layer_changes = _layer_changes(before.layers, now.layers)
    line = f"{title}: {unit_of(now)} {change(old, new)}"
    if _rose(old, new):
        rising = sorted(
            (layer for layer in layer_changes if layer.now > layer.before), key=lambda layer: layer.before - layer.now
        )
        verdict.worse.append("\n  ".join([line, *map(str, rising[:_LAYERS_NAMED])]))
        return
    if _rose(new, old):
        verdict.better.append(line)
    if others := _other_kernels(before.layers, now.layers):
        verdict.stale.append(f"{line}; {others}")
    elif fell(old, new):
        verdict.stale.append(line)
    # The total is within the tolerance, but a single layer is slower.
    for layer in layer_changes:
        if layer.before and _rose(layer.before, layer.now) and layer.now - layer.before > _LAYER_SHARE * old:
            verdict.worse.append(f"{title}: {layer}")


def _layer_changes(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[_LayerChange]:
    """Pair layers by name (equal names by position), in running order; removed layers last."""
    old = dict(_numbered(before))
    new = _numbered(now)
    layer_changes = []
    for index, (key, layer) in enumerate(new):
        earlier = old.pop(key, None)
        count = (earlier["instructions"] or 0) if earlier is not None else 0
        layer_changes.append(_LayerChange(index, layer["op"], layer["name"], count, layer["instructions"] or 0))
    places = {key: index for index, (key, _) in enumerate(_numbered(before))}
    layer_changes += [
        _LayerChange(places[key], layer["op"], layer["name"], layer["instructions"] or 0, 0)
        for key, layer in old.items()
    ]
    return layer_changes


def _other_kernels(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> str:
    """Describe the layers whose kernel changed, the first few by name; '' if there are none."""
    old = dict(_numbered(before))
    changed = [
        f"{layer['name']!r} uses {layer['kernel']}, was {earlier['kernel']}"
        for key, layer in _numbered(now)
        if (earlier := old.get(key)) is not None and earlier["kernel"] != layer["kernel"]
    ]
    more = len(changed) - _LAYERS_NAMED
    return "; ".join([*changed[:_LAYERS_NAMED], *([f"{more} more layers"] if more > 0 else [])])


def _numbered(layers: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, int], Mapping[str, Any]]]:
    seen: Counter[str] = Counter()
    numbered = []
    for layer in layers:
        numbered.append(((layer["name"], seen[layer["name"]]), layer))
        seen[layer["name"]] += 1
    return numbered


def _rose(before: int, now: int) -> bool:
    return now - before > TOLERANCE * before


def fell(before: int, now: int) -> bool:
    """Return whether a figure is so much lower that the stored one is stale."""
    return before - now > _FELL * before


def change(before: int, now: int) -> str:
    """Return a text such as `1,000 -> 1,020 (+2.0 %)`."""
    share = f"{100 * (now - before) / before:+.1f} %" if before else "new"
    return f"{before:,} -> {now:,} ({share})"
