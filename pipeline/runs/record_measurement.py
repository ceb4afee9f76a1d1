"""Add the cycles that a board measured to the project's silicon.yaml.

Other content of the file stays unchanged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.artifacts.digest import hash_file
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import PipelineError
from pipeline.project import Project
from pipeline.recipes.silicon import FILE, checked, load_own
from stages.backends.timing.silicon import FIRMLINE, RESET, Measurement
from stages.support.system.atomic_write import write_atomically

if TYPE_CHECKING:
    import yaml


_NEW = """\
# Cycles that boards of this project measured. `doit run … run_on=gdb://…` adds rows, and `doit bench suite=silicon`
# compares timing models with them. docs/how-to/hardware.md explains the file.
schema: 1
"""
# The firmware sets up no clock and no flash.
_MEMORY = "clock and flash as after a reset; without flash: memory has no wait states"


def record_measurement(
    report: Mapping[str, Any], firmware: Path, project: Project, recipe: str, changes: Sequence[str], compiler: str
) -> str:
    """Add the first inference of a run on a board as a row.

    It replaces the row of the same firmware and board.

    changes   overrides of the command line
    compiler  name and version

    Returns a line for the report, '' for a run on no board. Raises PipelineError if the file is wrong or cannot be
    written; it is then unchanged.
    """
    ran, board, cycles = report.get("ran"), report["board"], report["instructions"]["total"]
    if not ran or ran["simulator"]:
        return ""
    if not cycles or board is None or not board["clock"]:
        return f"not in {FILE}: {'the counter did not change' if not cycles else 'the target is no board with a clock'}"
    chip = f"{report['target']}{RESET}"
    options = " ".join(change for change in changes if not change.startswith("run_on="))
    row: dict[str, Any] = {
        "chip": chip,
        "code": FIRMLINE,
        "version": f"{pyproject_table('project')['version']} {hash_file(firmware)[:12]}",
        "compiler": compiler,
        "run": recipe,
        **({"arguments": {"options": options}} if options else {}),
        "cycles": cycles,
        "source": f"measured on {datetime.now(UTC):%Y-%m-%d}, {ran['counter']}; {', '.join(ran['chip']) or 'any chip'}",
    }
    facts = {key: board[key] for key in ("title", "core", "clock")}
    facts |= {"memory": _MEMORY, "source": board["source"] or "pipeline.yaml"}
    path = (project.root / FILE).resolve()
    text = _with_row(path, project, row, facts)
    try:
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(0, "Permission denied")
        write_atomically(path, text)
    except OSError as error:
        message = f"{project.display_path(path)} cannot be written: {error.strerror}"
        raise PipelineError(message, hint=f"the row for it: {_flow(row)}") from None
    return f"{cycles:,} cycles of {recipe} on {report['target']}, in {project.display_path(path)}"


def _with_row(path: Path, project: Project, row: dict[str, Any], chip: dict[str, Any]) -> str:
    """Return the text of the file with the row, and with its chip if that is new."""
    text, own = load_own(project)
    text = text or _NEW
    rows = () if own is None else own.measurements
    identity = Measurement.model_validate(row).identity
    same = [number for number, other in enumerate(rows) if other.identity == identity]
    if same:
        text = _replaced(text, same[0], {key: row[key] for key in ("cycles", "source")})
    else:
        text = _added(text, "measurements", "", row)
    if own is None or row["chip"] not in own.chips:
        text = _added(text, "chips", f"{row['chip']}: ", chip)
    try:
        checked(text, path, project)
    except PipelineError as error:
        message = f"the measurement cannot be added to {project.display_path(path)}: {error}"
        raise PipelineError(message, hint=f"add the row by hand: {_flow(row)}") from None
    return text


def _added(text: str, section: str, name: str, values: Mapping[str, Any]) -> str:
    """Return the text with an entry at the start of a section (a list or a mapping)."""
    entry = f"{name}{_flow(values)}"
    line = entry if name else f"- {entry}"
    root = _root(text)
    node = _value(root, section)
    if node is None and root is not None and root.flow_style:  # type: ignore[attr-defined]
        raise PipelineError(f"cannot add a row: {FILE} is one mapping in braces", hint=f"add under {section}: {line}")
    if node is None:
        return f"{text.rstrip()}\n{section}:\n  {line}\n"
    start, end = node.start_mark, node.end_mark
    if not node.value:
        return f"{text[: start.index]}\n  {line}{text[end.index :]}"
    if node.flow_style:  # type: ignore[attr-defined]
        return f"{text[: start.index + 1]}{entry}, {text[start.index + 1 :]}"
    begin = start.index - start.column
    return f"{text[:begin]}{' ' * start.column}{line}\n{text[begin:]}"


def _replaced(text: str, number: int, values: Mapping[str, Any]) -> str:
    """Return the text with other values in a row."""
    for key, value in values.items():
        rows = _value(_root(text), "measurements")
        node = None if rows is None else _value(rows.value[number], key)
        if node is not None:
            text = (
                f"{text[: node.start_mark.index]}{json.dumps(value, ensure_ascii=False)}{text[node.end_mark.index :]}"
            )
    return text


def _root(text: str) -> yaml.Node | None:
    from pipeline.documents.yaml_subset import compose

    return compose(text)


def _value(node: Any, key: str) -> yaml.Node | None:
    """Return the value of a key that the mapping itself has."""
    return next((value for name, value in getattr(node, "value", ()) if name.value == key), None)


def _flow(values: Mapping[str, Any]) -> str:
    """Return YAML in one line."""
    parts = (
        f"{key}: {_flow(value) if isinstance(value, Mapping) else _scalar(value)}" for key, value in values.items()
    )
    return f"{{{', '.join(parts)}}}"


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
