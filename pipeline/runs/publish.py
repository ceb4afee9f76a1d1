"""Fill `build/<recipe>/<target>/` with firmware.elf, src/, report.json and log.txt.

Files are copies of artifacts, since users may change files in build/. Each file is replaced by a rename, and only if it
differs, so parallel runs and kills leave no partial file.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import hash_file
from pipeline.artifacts.folders import remove
from pipeline.runs.report_page import add_commands, add_run_section
from stages.support.system.atomic_write import remove_stale_files, replacing, temporary_name, write_atomically

# Artifact kinds and names of copied files; all files of the report are copied.
_COPIED = (("compile", "firmware.elf"), ("emit", "src"))
REPORT = "report.json"
_PAGE = "report.md"
HTML = "report.html"
# Also keeps the reports of the last run on a board: the next simulation overwrites the folder above.
ON_BOARD = "on_board"
# The folder that `doit evidence` writes.
EVIDENCE = "evidence"
# Optional files of a report.
_NOT_ALWAYS = ("timeline.svg", "ranges.svg", "quantized.tflite")


def publish(
    artifacts: Mapping[str, Path],
    folder: Path,
    additions: Mapping[str, Any],
    command: str = "",
    complete: Callable[[str], str] = str,
) -> dict[str, Any] | None:
    """Copy artifacts (folders by kind) to `folder`; write report.json with `additions`.

    report.html gets `additions` too, and the `command` that repeats the run. `complete` returns a command of the
    report's advice with the arguments of this run, '' if there is no such command. Files of earlier runs that this run
    does not have are removed. The report stage writes report.json from artifacts only: the same key must give the same
    bytes. `additions` are facts of this run: `stages` with their keys, cached or not, seconds, and `tools`. Reports of
    a run on a board are also kept in `on_board`, as no run can repeat them. Evidence of this firmware is listed.

    Returns the report, None if there is none. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The folder above has the tables of a matrix.
    for place in (folder, folder.parent):
        remove_stale_files(place)
    always = (*_COPIED, *(("report", name) for name in (REPORT, _PAGE, HTML)))
    missing = [name for kind, name in always if kind not in artifacts]
    missing += [name for name in _NOT_ALWAYS if "report" not in artifacts or not (artifacts["report"] / name).exists()]
    for name in missing:
        remove(folder / name)
    copied = [artifacts[kind] / name for kind, name in _COPIED if kind in artifacts]
    if "report" in artifacts:
        copied += sorted(path for path in artifacts["report"].iterdir() if path.name not in (REPORT, HTML, _PAGE))
    for source in copied:
        if source.is_dir():
            _copy_folder(source, folder / source.name)
        elif source.is_file():
            _copy_file(source, folder / source.name)
    if "report" not in artifacts:
        return None
    additions = {**additions, "evidence": _evidence(folder)}
    report = _write_report(artifacts["report"], folder, additions, command, complete)
    if report is not None and report.get("ran"):
        # Its links to evidence would lead nowhere from there.
        _keep(artifacts["report"], folder / ON_BOARD, {**additions, "evidence": []}, command, complete)
    return report


def _evidence(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of evidence/evidence.json if they belong to this firmware; else []."""
    try:
        content = json.loads((folder / EVIDENCE / f"{EVIDENCE}.json").read_text(encoding="utf-8"))
        if content["firmware"] != hash_file(folder / "firmware.elf"):
            return []
        return [{key: row[key] for key in ("about", "file", "result", "holds")} for row in content["evidence"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _write_report(
    source: Path, folder: Path, additions: Mapping[str, Any], command: str, complete: Callable[[str], str]
) -> dict[str, Any] | None:
    """Write report.json, report.html and report.md with the facts of this run.

    Returns the report or None.
    """
    if not (source / REPORT).is_file():
        return None
    report: dict[str, Any] = {**json.loads((source / REPORT).read_text(encoding="utf-8")), **additions}
    for entry in report.get("advice", ()):
        entry["command"] = (complete(entry["command"]) if entry["command"] else "") or None
    write_atomically(folder / REPORT, json.dumps(report, indent=1) + "\n")
    for name in (HTML, _PAGE):
        if (source / name).is_file():
            text = add_commands((source / name).read_text(encoding="utf-8"), report.get("advice", ()))
            write_atomically(folder / name, add_run_section(text, command, additions) if name == HTML else text)
    return report


def _keep(
    source: Path, folder: Path, additions: Mapping[str, Any], command: str, complete: Callable[[str], str]
) -> None:
    """Replace `folder` by a copy of a report."""
    remove(folder)
    folder.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file() and path.name not in (REPORT, HTML, _PAGE):
            _copy_file(path, folder / path.name)
    _write_report(source, folder, additions, command, complete)


def _same(source: Path, copy: Path) -> bool:
    """Whether `copy` has the size and time that `_copy_file` gave it."""
    try:
        actual, expected = copy.stat(), source.stat()
    except FileNotFoundError:
        return False
    return (actual.st_size, actual.st_mtime_ns) == (expected.st_size, expected.st_mtime_ns)


def _copy_file(source: Path, place: Path) -> None:
    if _same(source, place):
        return
    with replacing(place) as temporary:
        shutil.copyfile(source, temporary)
        info = source.stat()
        # Artifacts are read-only; published files are not.
        temporary.chmod(info.st_mode | 0o200)
        os.utime(temporary, ns=(info.st_atime_ns, info.st_mtime_ns))
        if place.is_dir():
            remove(place)


def _copy_folder(source: Path, place: Path) -> None:
    names = _tree(source)
    if place.is_dir() and _tree(place) == names and all(_same(source / name, place / name) for name in names):
        return
    temporary = temporary_name(place)
    old = temporary.with_name(f"{temporary.name}.old")
    try:
        for name in names:
            _copy_file(source / name, temporary / name)
        # A rename cannot replace a folder with files: for an instant there is no folder.
        if place.exists():
            place.rename(old)
        temporary.rename(place)
    finally:
        for leftover in (temporary, old):
            shutil.rmtree(leftover, ignore_errors=True)


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
