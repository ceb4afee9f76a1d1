"""Labels over time: a table `file,start,end,class`, or Audacity's label tracks.

    labels.csv                      yes one.txt, of yes one.wav

    file,start,end,class            0.31    0.74    yes
    yes one.wav,0.31,0.74,yes       2.05    2.40    no
    clip_17.wav,,,no

Times are in seconds. A row without times labels the whole file. Recordings without a label contain no keyword.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path, PurePosixPath

from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import several

TABLES = (".csv", ".tsv")
TRACK = ".txt"
NO_LABELS = "set=stages.simulate.inputs.labels=null"
_COLUMNS = "file,start,end,class"
_ROUNDING = 0.1  # seconds by which a label may end after its recording


@dataclass(frozen=True)
class Label:
    """A class in a recording from `start` to `end`, in seconds; without both: all of it."""

    name: str
    start: float | None = None
    end: float | None = None


def is_over_time(name: str) -> bool:
    """Return whether the name is that of a file with labels over time."""
    return Path(name).suffix.lower() in (*TABLES, TRACK)


def read_label_times(
    files: Mapping[str, Path], recordings: Mapping[str, float], limited: bool = False
) -> tuple[dict[str, list[Label]], list[str]]:
    """Return the labels of each recording, sorted by time, and warnings.

    files       tables or tracks, by the name to show
    recordings  length in seconds by name, as `inputs.files` names them
    limited     whether recordings are used only in part: labels after their end are then left out

    Raises StageError for a file that is not of this form, and for times outside of the recording.
    """
    labels: dict[str, list[Label]] = {name: [] for name in recordings}
    unknown: list[str] = []
    for shown, path in files.items():
        name = escape.name(shown, 200)
        rows = _track(shown, name, path) if path.suffix.lower() == TRACK else _table(name, path)
        for line, file, label in rows:
            recording = _recording(file, shown, labels)
            if recording is None:
                unknown.append(file)
                continue
            end = recordings[recording]
            if label.start is not None and label.end is not None:
                if limited and label.end > end:
                    continue
                if label.end > end + _ROUNDING:
                    raise StageError(
                        f"{name}, line {line}: a label ends at {label.end:g} s, {escape.name(recording)} at {end:g} s",
                        hint="times are in seconds",
                    )
            labels[recording].append(label)
    names = ", ".join(escape.name(name) for name in list(files)[:3])
    if unknown and not any(labels.values()):
        missing = several([escape.name(name) for name in dict.fromkeys(unknown)], 3)
        raise StageError(
            f"{names}: `files` has none of the labelled recordings: {missing}",
            hint=f"use the names in `files`, or replace or remove the labels: {NO_LABELS}",
        )
    warnings = []
    if unknown:
        missing = several([escape.name(name) for name in dict.fromkeys(unknown)], 3)
        warnings.append(f"labels in {names} are not used, because `files` does not have {missing}")
    for entries in labels.values():
        entries.sort(key=lambda label: (label.start or 0.0, label.end or 0.0))
    return labels, warnings


def _recording(file: str, source: str, recordings: Iterable[str]) -> str | None:
    """Return the recording of a row, by its name in `files` or by its unique file name.

    If several have the file name, return the one in the folder of the labels. Raises StageError without it.
    """
    names = list(recordings)
    if file in names:
        return file
    wanted = _parts(file)
    matches = [name for name in names if _parts(name)[-len(wanted) :] == wanted]
    if len(matches) > 1:
        matches = [name for name in matches if PurePosixPath(name).parent == PurePosixPath(source).parent]
        if len(matches) != 1:
            shown = escape.name(file)
            raise StageError(
                f"{escape.name(source, 200)}: several files are named {shown}", hint="add the folder to the name"
            )
    return matches[0] if matches else None


def _parts(file: str) -> tuple[str, ...]:
    """Return the parts of a path, its suffix in lower case."""
    path = PurePosixPath(file)
    return path.with_suffix(path.suffix.lower()).parts if path.suffix else path.parts


def _lines(name: str, path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise StageError(f"there is no file {name}") from None
    except OSError as error:
        raise StageError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise StageError(f"{name}: is not text in UTF-8", hint="save it as CSV in UTF-8") from None


def _table(name: str, path: Path) -> Iterator[tuple[int, str, Label]]:
    """Yield line, file and label of each row."""
    lines = _lines(name, path)
    header = lines[0] if lines else ""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ";" if ";" in header and "," not in header else ","
    rows = csv.reader(lines, delimiter=delimiter)
    columns = [column.strip().lower() for column in next(rows, [])]
    if not {"file", "class"} <= set(columns) or ("start" in columns) != ("end" in columns):
        raise StageError(f"{name}: the first line is not {_COLUMNS}", hint="start and end are optional together")
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        row = {column: cell.strip() for column, cell in zip(columns, cells, strict=False)}
        at = f"{name}, line {rows.line_num}"
        if not row.get("file") or not row.get("class"):
            raise StageError(f"{at}: the row has no file or no class", hint=f"columns are {', '.join(columns)}")
        yield rows.line_num, row["file"], _label(at, row["class"], row.get("start", ""), row.get("end", ""))


def _track(shown: str, name: str, path: Path) -> Iterator[tuple[int, str, Label]]:
    """Yield line, WAV file and label of each row; the WAV file has the track's name."""
    file = PurePosixPath(shown).with_suffix(".wav").name
    for number, text in enumerate(_lines(name, path), 1):
        if not text.strip() or text.startswith("\\"):  # a label's frequencies
            continue
        cells: Sequence[str] = text.split("\t", 2)
        if len(cells) < 3 or not cells[2].strip():
            raise StageError(
                f"{name}, line {number}: not `start<tab>end<tab>class`", hint="export it with Audacity: Export Labels"
            )
        yield number, file, _label(f"{name}, line {number}", cells[2].strip(), cells[0], cells[1])


def _label(at: str, name: str, start: str, end: str) -> Label:
    if not start.strip() and not end.strip():
        return Label(name)
    try:
        times = [float(start), float(end)]
    except ValueError:
        times = [-1.0]
    if not all(isfinite(time) and time >= 0 for time in times) or times != sorted(times):
        shown = escape.quoted(f"{start} {end}")
        raise StageError(
            f"{at}: {shown} must be the start and the end of a label", hint="times are seconds, such as 0.31"
        )
    return Label(name, *times)
