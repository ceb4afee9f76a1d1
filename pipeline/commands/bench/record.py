"""The figures of one case, taken from its report.json, and the file docs/bench.json that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.errors import PipelineError
from stages.system.asides import write_whole
from stages.system.json_text import parsed_json

FORMAT = 1
MEMORY = ("arena_bytes", "ram_bytes", "rom_bytes", "stack_bytes", "weights_bytes")
CYCLES = ("core", "waiting", "engine", "dma")
_VERIFY = ("inputs", "outputs_checked", "mismatches", "layers_checked")


@dataclass(frozen=True)
class Record:
    """What one case came to; no times, so the same code gives the same record.

    `instructions` are those of the first inference, None on a target without a counter. `memory` holds bytes.
    `layers` are {name, op, kernel, macs, instructions} in running order. `max_relative` is the largest relative error
    of a float32 output, None for integer networks. `cycles` are the report's by unit and what was predicted, None on a
    target without an accelerator; `distance` is that of the outputs from LiteRT's: None where they are its own, and
    where the firmware is held to an accelerator's arithmetic the share that differs and by how much at most.
    """

    row: str
    target: str
    recipe: str
    model: str
    sha256: str
    macs: int
    instructions: int | None
    memory: Mapping[str, int | None]
    verify: Mapping[str, int]
    max_relative: float | None
    cycles: Mapping[str, int] | None
    distance: Mapping[str, float] | None
    tools: Mapping[str, str]
    layers: tuple[Mapping[str, Any], ...]

    @property
    def id(self) -> tuple[str, str]:
        """The same as the case's."""
        return self.row, self.target


def record_of(case: Case, report: Mapping[str, Any]) -> Record:
    """The record of a report.json."""
    verify = report["verify"]
    relative = (verify.get("float") or {}).get("max_relative")
    return Record(
        row=case.row,
        target=case.target,
        recipe=case.base,
        model=report["model"]["name"],
        sha256=report["model"]["sha256"],
        macs=report["model"]["macs"],
        instructions=report["instructions"]["total"],
        memory={name: report["memory"].get(name) for name in MEMORY},
        verify={name: verify[name] for name in _VERIFY},
        # Two digits tell all; the last ones depend on the machine's mathematical library.
        max_relative=None if relative is None else float(f"{relative:.1e}"),
        cycles=_cycles(report["cycles"]),
        distance=_distance(verify["distance"]),
        tools=dict(sorted(report["tools"].items())),
        layers=tuple(
            {name: layer[name] for name in ("name", "op", "kernel", "macs", "instructions")}
            for layer in report["layers"]
        ),
    )


def unit_of(record: Record) -> str:
    """What `instructions` of a record are called: on a board with an accelerator they are cycles of its one clock."""
    return "instructions" if record.cycles is None else "cycles"


def _cycles(cycles: Mapping[str, Any] | None) -> dict[str, int] | None:
    if cycles is None:
        return None
    return {unit: cycles[unit] for unit in CYCLES} | {"predicted": cycles["predicted"]["total"]}


def _distance(distance: Mapping[str, Any] | None) -> dict[str, float] | None:
    if distance is None:
        return None
    return {"share": round(distance["outputs"]["share"], 4), "largest": distance["outputs"]["largest"]}


def read_records(path: Path) -> dict[tuple[str, str], Record]:
    """The records of docs/bench.json by id; none when there is no such file. Raises PipelineError."""
    try:
        data = parsed_json(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise PipelineError(f"{path.name}: format {data['format']}, expected {FORMAT}", hint=_RENEW)
        records = [Record(**{**entry, "layers": tuple(entry["layers"])}) for entry in data["rows"]]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{path.name} cannot be read: {error}", hint=_RENEW) from None
    return {record.id: record for record in records}


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON with one line for each figure and each layer, so that a diff shows what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(_entry(record) for record in records)
    write_whole(path, f'{{\n "format": {FORMAT},\n "rows": [\n{rows}\n ]\n}}\n')


_RENEW = "write it anew with `doit bench --update`"


def _entry(record: Record) -> str:
    lines = []
    for field in fields(record):
        if field.name != "layers":
            lines.append(f'   "{field.name}": {json.dumps(_plain(getattr(record, field.name)), ensure_ascii=False)}')
    layers = ",\n".join(f"    {json.dumps(dict(layer), ensure_ascii=False)}" for layer in record.layers)
    lines.append(f'   "layers": [\n{layers}\n   ]' if layers else '   "layers": []')
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
