"""Figures of a case, from its report.json, and the file docs/bench.json that stores them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.errors import PipelineError
from stages.support.system.atomic_write import write_atomically
from stages.support.system.json_text import parsed_json

FORMAT = 1
MEMORY = ("arena_bytes", "ram_bytes", "rom_bytes", "stack_bytes", "weights_bytes")
CYCLES = ("core", "waiting", "engine", "dma")
_VERIFY = ("inputs", "outputs_checked", "mismatches", "layers_checked")


@dataclass(frozen=True)
class Record:
    """Figures of a case, without times: the same code gives the same record.

    instructions  of the first inference, None on a target without a counter
    memory        bytes
    layers        {name, op, kernel, macs, instructions} in running order
    max_relative  largest relative error of a float32 output, None for integer networks
    cycles        by unit, and the predicted number; None without an accelerator
    distance      difference of the outputs from LiteRT, for firmware that is compared with an accelerator's arithmetic:
                  the share of values that differ, and the largest difference; else None
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
        """The key of its case."""
        return self.row, self.target


def record_of(case: Case, report: Mapping[str, Any]) -> Record:
    """Return the record of a report.json."""
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
        # Two digits: the others depend on the machine's math library.
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
    """Return the unit of `instructions`: cycles on a board with an accelerator."""
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
    """Read docs/bench.json; {} if there is no such file. Raises PipelineError."""
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
    """Write records as JSON, one line per figure and layer for readable diffs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(_entry(record) for record in records)
    write_atomically(path, f'{{\n "format": {FORMAT},\n "rows": [\n{rows}\n ]\n}}\n')


_RENEW = "update it with `doit bench --update`"


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
