"""Comparing figures with those of docs/bench.json: what rose by more than 1 %, in which layer, and what fell.

Figures that fell far, or that other kernels made, are stale: they let pass what would be a rise of the true ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import Record, unit_of
from pipeline.commands.bench.run import Outcome
from pipeline.commands.exit_codes import FAILED, PENDING
from stages.messages import escape

TOLERANCE = 0.01
_FELL = 0.05  # by which a figure may fall until the stored one is stale
# A layer counts by itself when it also moved its network by this share: 28 instructions that become 30 do not.
_LAYER_SHARE = 0.001
_LAYERS_NAMED = 3
_MEMORY = (("ram_bytes", "RAM"), ("rom_bytes", "ROM"))


@dataclass
class Verdict:
    """`worse` makes the check fail; `stale`, `better` and `notes` are told. Each entry has one to four lines."""

    worse: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether anything is worse."""
        return bool(self.worse)

    @property
    def exit_code(self) -> int:
        """FAILED where anything is worse, PENDING where only stored figures are old."""
        return FAILED if self.failed else PENDING if self.stale else 0

    def tell(self, renew: str) -> None:
        """Prints all of it, what is worse at the end; `renew` is the command that stores figures anew."""
        labels = (("note", self.notes), ("better", self.better), ("STALE", self.stale), ("WORSE", self.worse))
        for label, lines in labels:
            for line in lines:
                print(f"{label}: {escape.message(line)}")
        if self.stale:
            print(f"figures are stored that are not of today's kernels: {renew}")


@dataclass(frozen=True)
class _Move:
    """One layer's instructions before and now; 0 before when it is new, 0 now when it is gone."""

    index: int
    op: str
    name: str
    before: int
    now: int

    def __str__(self) -> str:
        return f"layer {self.index} ({self.op}) {self.name!r}: {change(self.before, self.now)}"


def check(outcomes: Iterable[Outcome], stored: Mapping[tuple[str, str], Record]) -> Verdict:
    """Compare each measured case with its stored record. A case that failed is worse, whatever is stored."""
    verdict = Verdict()
    for outcome in outcomes:
        title, now, before = outcome.case.title, outcome.record, stored.get(outcome.case.id)
        if outcome.failed:
            verdict.worse.append(f"{title}: {outcome.first_line}")
        elif now is None:
            verdict.notes.append(f"{title}: skipped, {outcome.first_line}")
        elif before is None:
            verdict.notes.append(f"{title}: not stored yet; `doit bench --update` stores it")
            _limit(outcome.case, now, verdict)
        elif before.sha256 != now.sha256:
            verdict.worse.append(f"{title}: the model is not the one whose figures are stored; `doit bench --update`")
        else:
            _compare(title, before, now, verdict)
            _limit(outcome.case, now, verdict)
            verdict.notes += [line for line in _other_tools(before, now) if line not in verdict.notes]
    return verdict


def over_limit(case: Case, record: Record) -> str:
    """A line where a case takes more instructions (or cycles) than the suite lets it, else ''."""
    count, limit = record.instructions, case.at_most
    if limit is None or count is None or count <= limit:
        return ""
    return f"{case.title}: {count:,} {unit_of(record)}, of which {limit:,} are allowed"


def _limit(case: Case, now: Record, verdict: Verdict) -> None:
    if line := over_limit(case, now):
        verdict.worse.append(line)


def _other_tools(before: Record, now: Record) -> Iterator[str]:
    """A line for each tool of another version: figures may have moved for that reason alone."""
    for name in sorted(before.tools.keys() & now.tools.keys()):
        if before.tools[name] != now.tools[name]:
            yield f"{name} {now.tools[name]}; figures are stored that were measured with {before.tools[name]}"


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
    moves = _moves(before.layers, now.layers)
    line = f"{title}: {unit_of(now)} {change(old, new)}"
    if _rose(old, new):
        rising = sorted((move for move in moves if move.now > move.before), key=lambda move: move.before - move.now)
        verdict.worse.append("\n  ".join([line, *map(str, rising[:_LAYERS_NAMED])]))
        return
    if _rose(new, old):
        verdict.better.append(line)
    if others := _other_kernels(before.layers, now.layers):
        verdict.stale.append(f"{line}; {others}")
    elif fell(old, new):
        verdict.stale.append(line)
    # The network holds its total, but one of its layers pays for the others.
    for move in moves:
        if move.before and _rose(move.before, move.now) and move.now - move.before > _LAYER_SHARE * old:
            verdict.worse.append(f"{title}: {move}")


def _moves(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[_Move]:
    """Layers paired by name (the n-th of a name with the n-th of that name) in running order; at the end those gone."""
    old = dict(_numbered(before))
    new = _numbered(now)
    moves = []
    for index, (key, layer) in enumerate(new):
        earlier = old.pop(key, None)
        count = (earlier["instructions"] or 0) if earlier is not None else 0
        moves.append(_Move(index, layer["op"], layer["name"], count, layer["instructions"] or 0))
    places = {key: index for index, (key, _) in enumerate(_numbered(before))}
    moves += [
        _Move(places[key], layer["op"], layer["name"], layer["instructions"] or 0, 0) for key, layer in old.items()
    ]
    return moves


def _other_kernels(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> str:
    """The layers that other kernels compute than those of the stored figures, the first few by name; '' for none."""
    old = dict(_numbered(before))
    moved = [
        f"{layer['name']!r} by {layer['kernel']}, was by {earlier['kernel']}"
        for key, layer in _numbered(now)
        if (earlier := old.get(key)) is not None and earlier["kernel"] != layer["kernel"]
    ]
    more = len(moved) - _LAYERS_NAMED
    return "; ".join([*moved[:_LAYERS_NAMED], *([f"{more} more layers"] if more > 0 else [])])


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
    """Whether a figure is so much lower than the stored one that this is stale."""
    return before - now > _FELL * before


def change(before: int, now: int) -> str:
    """`1,000 -> 1,020 (+2.0 %)`."""
    share = f"{100 * (now - before) / before:+.1f} %" if before else "new"
    return f"{before:,} -> {now:,} ({share})"
