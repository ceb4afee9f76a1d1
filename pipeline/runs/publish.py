"""What a run leaves for the user: `build/<recipe>/<target>/` with firmware.elf, src/, report.json and log.txt.

Everything is copied from artifacts, since a user may strip or patch what lies in build/. Each file appears by a rename,
and only when it differs, so two runs side by side, or a kill, leave no half file.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.artifacts.folders import remove
from pipeline.runs.page import with_run
from stages.system.asides import aside, clear_asides, write_whole, written_aside

# Kind of artifact and name of what is copied; of the report everything is.
_COPIED = (("compile", "firmware.elf"), ("emit", "src"))
_REPORT = "report.json"
_PAGE = "report.md"
_HTML = "report.html"
# Where the reports of the last run on a board are too: the next simulation has the folder above.
ON_BOARD = "on_board"
# Files of a report that not every one has.
_NOT_ALWAYS = ("timeline.svg", "ranges.svg", "quantized.tflite")


def publish(
    artifacts: Mapping[str, Path], folder: Path, additions: Mapping[str, Any], command: str = ""
) -> dict[str, Any] | None:
    """Copy from the artifacts' folders, by kind, into `folder`, and write report.json with `additions` in it.

    report.html has them too, and the `command` that repeats the run.

    What a run before left of a kind that is not there goes: it would be taken for this one's.

    The report stage makes report.json from artifacts alone, as the same key must give the same bytes; what is only
    known about this run (`stages` with their keys, whether cached, seconds, and `tools`) is added here. What ran on a
    board is in `on_board` too, as no other run can make it again. Returns the report, or None when there is none.
    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A matrix has its tables in the folder above.
    for place in (folder, folder.parent):
        clear_asides(place)
    always = (*_COPIED, *(("report", name) for name in (_REPORT, _PAGE, _HTML)))
    lacking = [name for kind, name in always if kind not in artifacts]
    lacking += [name for name in _NOT_ALWAYS if "report" not in artifacts or not (artifacts["report"] / name).exists()]
    for name in lacking:
        remove(folder / name)
    copied = [artifacts[kind] / name for kind, name in _COPIED if kind in artifacts]
    if "report" in artifacts:
        copied += sorted(path for path in artifacts["report"].iterdir() if path.name not in (_REPORT, _HTML))
    for source in copied:
        if source.is_dir():
            _copy_folder(source, folder / source.name)
        elif source.is_file():
            _copy_file(source, folder / source.name)
    if "report" not in artifacts:
        return None
    report = _write_report(artifacts["report"], folder, additions, command)
    if report is not None and report.get("ran"):
        _keep(artifacts["report"], folder / ON_BOARD, additions, command)
    return report


def _write_report(made: Path, folder: Path, additions: Mapping[str, Any], command: str) -> dict[str, Any] | None:
    """report.json and report.html with `additions`; the first, or None where there is none."""
    if not (made / _REPORT).is_file():
        return None
    report: dict[str, Any] = {**json.loads((made / _REPORT).read_text(encoding="utf-8")), **additions}
    write_whole(folder / _REPORT, json.dumps(report, indent=1) + "\n")
    page = made / _HTML
    if page.is_file():
        write_whole(folder / _HTML, with_run(page.read_text(encoding="utf-8"), command, additions))
    return report


def _keep(made: Path, folder: Path, additions: Mapping[str, Any], command: str) -> None:
    """All of a report in a folder of its own, in place of the one before."""
    remove(folder)
    folder.mkdir()
    for path in sorted(made.iterdir()):
        if path.is_file() and path.name not in (_REPORT, _HTML):
            _copy_file(path, folder / path.name)
    _write_report(made, folder, additions, command)


def _same(source: Path, copy: Path) -> bool:
    """Whether `copy` has the size and time that `_copy_file` gave it."""
    try:
        made, wanted = copy.stat(), source.stat()
    except FileNotFoundError:
        return False
    return (made.st_size, made.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns)


def _copy_file(source: Path, place: Path) -> None:
    if _same(source, place):
        return
    with written_aside(place) as made:
        shutil.copyfile(source, made)
        info = source.stat()
        # Artifacts are read-only; what is published belongs to the user.
        made.chmod(info.st_mode | 0o200)
        os.utime(made, ns=(info.st_atime_ns, info.st_mtime_ns))
        if place.is_dir():
            remove(place)


def _copy_folder(source: Path, place: Path) -> None:
    names = _tree(source)
    if place.is_dir() and _tree(place) == names and all(_same(source / name, place / name) for name in names):
        return
    made = aside(place)
    old = made.with_name(f"{made.name}.old")
    try:
        for name in names:
            _copy_file(source / name, made / name)
        # A folder cannot replace one that is not empty: for an instant there is none.
        if place.exists():
            place.rename(old)
        made.rename(place)
    finally:
        for left in (made, old):
            shutil.rmtree(left, ignore_errors=True)


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
