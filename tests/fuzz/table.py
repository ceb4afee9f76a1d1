"""What a campaign found, for people."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.fuzz.campaign import Tally
from tests.fuzz.outcome import FAULTS

_SHOWN = 40  # failures with their messages; all are counted
_LINES = 8


def summary(kind: str, seed: int, tally: Tally) -> dict[str, Any]:
    """Counts of one kind of mutants, by verdict and by fault. JSON values."""
    faults = Counter(fault for _, outcome in tally.failed for fault in outcome.faults)
    return {
        "kind": kind,
        "seed": seed,
        "verdicts": dict(tally.verdicts.most_common()),
        "faults": {name: faults[name] for name in FAULTS if faults[name]},
    }


def table(summaries: Sequence[dict[str, Any]]) -> str:
    """Counts by kind and verdict."""
    verdicts = list(
        dict.fromkeys(verdict for found in summaries for verdict in found["verdicts"] if verdict != "failed")
    )
    head = ["mutants of", "seed", "all", *verdicts, "failed"]
    rows = [
        [
            found["kind"],
            found["seed"],
            sum(found["verdicts"].values()),
            *(found["verdicts"].get(v, 0) for v in head[3:]),
        ]
        for found in summaries
    ]
    widths = [max(len(str(row[column])) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  ".join(f"{cell!s:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    for found in summaries:
        if found["faults"]:
            lines.append(f"{found['kind']}, failed: {', '.join(f'{n} {name}' for name, n in found['faults'].items())}")
    return "\n".join(lines)


def failures(tally: Tally) -> str:
    """Each failure with the command that repeats it, worst first; many of one kind are cut short."""
    worst = sorted(tally.failed, key=lambda pair: (min(map(FAULTS.index, pair[1].faults)), pair[0].index))
    texts = [f"{len(tally.failed)} mutants failed"]
    for job, outcome in worst[:_SHOWN]:
        lines = [line[:300].encode("unicode_escape").decode() for line in outcome.message.splitlines()[-_LINES:]]
        texts.append("\n    ".join([f"{', '.join(outcome.faults)}: {job}", *lines]))
    if len(worst) > _SHOWN:
        texts.append(f"... and {len(worst) - _SHOWN} more")
    return "\n".join(texts)
