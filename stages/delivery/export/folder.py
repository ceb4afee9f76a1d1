"""Write an export into a folder, without overwriting or removing files of the user.

`.firmline-export.json` lists the files of the export with their digests: {format: 1, recipe, target, form, overrides,
files: {path: sha256}}.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from stages.base import StageError
from stages.support.messages import escape
from stages.support.system.atomic_write import write_atomically
from stages.support.system.json_text import parsed_json
from stages.support.system.path_below import path_below

MANIFEST = ".firmline-export.json"
_MOST_NAMED = 5


def check(folder: Path, facts: Mapping[str, str], shown: str) -> dict[str, str]:
    """Return the files of an earlier export of the same kind in a folder, with digests.

    Empty for a new folder.

    facts  recipe, target, form and overrides of the export
    shown  the folder, for messages

    Raises StageError if the folder has other files, or exported files were changed.
    """
    before = _manifest(folder, facts, shown)
    _refuse_changed(folder, before, shown)
    return before


def write(folder: Path, files: Mapping[str, bytes], facts: Mapping[str, str], shown: str) -> int:
    """Write the export into a folder and return the number of changed files.

    The folder is new, empty, or has an earlier export of the same kind. Raises StageError, without changes, if it has
    other files.
    """
    before = check(folder, facts, shown)
    _check_below(folder, files, shown)
    conflicts = [
        path
        for path in files
        if path not in before
        and ((folder / path).exists() or (folder / path).is_symlink() or _under_a_file(folder, path))
    ]
    if conflicts:
        raise StageError(f"the export would overwrite files in {shown}: {_named(conflicts)}", hint="move them away")
    digests = {path: _digest(content) for path, content in files.items()}
    changed = 0
    try:
        # If this is interrupted, both the old and the new content of a file count as exported.
        either = {path: f"{before.get(path, '')} {digests.get(path, '')}".strip() for path in {*before, *digests}}
        write_atomically(folder / MANIFEST, _as_text(facts, either))
        for path, content in files.items():
            if before.get(path) != digests[path] or not (folder / path).is_file():
                write_atomically(folder / path, content)
                changed += 1
        for path in sorted(before.keys() - files.keys()):
            (folder / path).unlink(missing_ok=True)
            _remove_empty(folder, path)
            changed += 1
        write_atomically(folder / MANIFEST, _as_text(facts, digests))
    except OSError as error:
        raise StageError(f"{shown} cannot be written: {error.strerror}") from None
    return changed


def _manifest(folder: Path, facts: Mapping[str, str], shown: str) -> dict[str, str]:
    """Return the files of an earlier export, with digests.

    Raises StageError if the folder has other content.
    """
    if folder.is_symlink() and not folder.exists():
        raise StageError(f"{shown} is a broken link")
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise StageError(f"{shown} is a file, but an export needs a folder", hint="name a folder with to=FOLDER")
    names = sorted(path.name for path in folder.iterdir())
    if MANIFEST not in names:
        if names:
            raise StageError(
                f"{shown} has other files: {_named(names)}", hint="name a new or an empty folder with to=FOLDER"
            )
        return {}
    try:
        # Early exports have no `overrides`.
        manifest: Any = {"overrides": "", **parsed_json((folder / MANIFEST).read_text(encoding="utf-8"))}
        files = {str(path): str(digest) for path, digest in manifest["files"].items()}
        earlier_facts = {key: str(manifest[key]) for key in facts}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StageError(f"{shown}/{MANIFEST} is damaged, so the exported files are unknown") from None
    _check_below(folder, files, shown)
    if earlier_facts != dict(facts):
        export = escape.name(f"{earlier_facts['recipe']} for {earlier_facts['target']} as {earlier_facts['form']}")
        if earlier_facts["overrides"] != facts["overrides"]:
            export += (
                f", with {escape.name(earlier_facts['overrides'])}"
                if earlier_facts["overrides"]
                else ", without set= and model="
            )
        raise StageError(f"{shown} has another export: {export}", hint="name another folder with to=FOLDER")
    return files


def _refuse_changed(folder: Path, before: Mapping[str, str], shown: str) -> None:
    changed = [
        path
        for path, digest in before.items()
        if (folder / path).exists()
        and (not (folder / path).is_file() or _digest_of(folder / path) not in digest.split())
    ]
    if changed:
        raise StageError(
            f"{shown} has files that were changed since they were exported: {_named(changed)}",
            hint="move them away, or name another folder with to=FOLDER",
        )


def _check_below(folder: Path, files: Iterable[str], shown: str) -> None:
    """Raise StageError for a path outside of the folder."""
    for path in (*files, MANIFEST):
        try:
            path_below(folder, path)
        except OSError as error:
            raise StageError(f"{shown}/{escape.name(path)} cannot be written: {error.strerror}") from None


def _under_a_file(folder: Path, path: str) -> bool:
    """Return whether a parent folder of the path exists as a file."""
    parents = [folder.joinpath(*PurePosixPath(path).parts[:end]) for end in range(1, len(PurePosixPath(path).parts))]
    return any(parent.exists() and not parent.is_dir() for parent in parents)


def _as_text(facts: Mapping[str, str], files: Mapping[str, str]) -> str:
    return json.dumps({"format": 1, **facts, "files": dict(sorted(files.items()))}, indent=1) + "\n"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(path: Path) -> str:
    return _digest(path.read_bytes())


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(escape.name(path) for path in paths[:_MOST_NAMED]) + more


def _remove_empty(folder: Path, path: str) -> None:
    for parent in PurePosixPath(path).parents:
        if str(parent) == ".":
            break
        with contextlib.suppress(OSError):
            (folder / parent).rmdir()
