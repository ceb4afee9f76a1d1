"""Reasons why a stage will run: differences between its key and that of the last run."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import digest_of
from pipeline.artifacts.manifest import content_of
from pipeline.artifacts.store import Store
from pipeline.keys.planner import Action, Plan
from stages.support.messages.wording import as_yaml

# Changed files of one folder that are listed by name; more are counted.
_MAX_LISTED = 4


@dataclass(frozen=True)
class Explanation:
    """State of one stage: whether its artifact is stored, and why not.

    key: the action key; '' if it is unknown before earlier stages have run.
    reasons: why the stage will run.
    unless: earlier stages that will run. `cached` and `reasons` hold if their outputs do not change.
    remote: whether the artifact is in the remote store only.
    """

    kind: str
    key: str
    cached: bool
    reasons: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    remote: bool = False


@dataclass(frozen=True)
class _Expected:
    """Digest of an artifact, valid if the stages in `unless` keep their outputs.

    content: None if unknown.
    """

    content: str | None
    unless: tuple[str, ...] = ()


def explain(
    plan: Plan, store: Store, remote_manifest: Callable[[str], Mapping[str, Any] | None] = lambda key: None
) -> list[Explanation]:
    """Return one explanation per stage, in order.

    remote_manifest: returns the manifest of a key in the remote store, or None.
    """
    last = store.runs.find(plan.recipe, plan.target)
    keys = last.keys if last is not None else {}
    expected: dict[str, _Expected] = {}
    return [_explain(action, store, keys.get(action.kind), expected, remote_manifest) for action in plan]


def code_folders(action: Action) -> list[str]:
    """Return the folders with code of a key, such as `stages/ir/{graph, operators}`.

    Files of plug-ins outside of a folder are listed by name.
    """
    folders: dict[str, set[str]] = {}
    for name in sorted(action.code):
        parts = Path(name).parts[:-1]
        folders.setdefault("/".join(parts[:2]) or name, set()).update(parts[2:3])
    return [f"{top}/{{{', '.join(sorted(below))}}}" if below else top for top, below in sorted(folders.items())]


def comparison_text(plan: Plan, store: Store) -> str:
    """Describe the run that the reasons refer to, and the differences in its overrides.

    `compared with its run of 2026-11-21 04:10, which had target=rv32-rvp and not set=stages.emit.unroll=8`
    """
    last = store.runs.find(plan.recipe, plan.target)
    if last is None:
        return "without a recorded run"
    had = [f"target={last.target}"] if last.target != plan.target else []
    had += [change for change in last.changes if change not in plan.changes]
    lacked = [change for change in plan.changes if change not in last.changes]
    when = datetime.fromtimestamp(last.when).strftime("%Y-%m-%d %H:%M")
    differs = " and ".join(part for part in (", ".join(had), f"not {', '.join(lacked)}" if lacked else "") if part)
    return f"compared with its run of {when}" + (f", which had {differs}" if differs else "")


def _explain(
    action: Action,
    store: Store,
    last: str | None,
    expected: dict[str, _Expected],
    remote_manifest: Callable[[str], Mapping[str, Any] | None],
) -> Explanation:
    """Explain one stage and add its artifact's content to `expected`."""
    consumed = {kind: expected[name] for kind, name in action.link.inputs.items()}
    unless = tuple(dict.fromkeys(name for artifact in consumed.values() for name in artifact.unless))
    before = store.manifest(last) if last else None
    had = before["ingredients"]["inputs"] if before is not None else {}
    missing = [kind for kind, artifact in consumed.items() if artifact.content is None]
    ingredients = action.consuming({kind: artifact.content or had.get(kind, "") for kind, artifact in consumed.items()})
    key = digest_of(ingredients)
    stored = None if missing else store.find(key)
    if stored is not None:
        expected[action.kind] = _Expected(stored.content, unless)
        return Explanation(action.kind, "" if unless else key, True, (), unless)
    if not missing and (manifest := remote_manifest(key)) is not None:
        expected[action.kind] = _Expected(content_of(manifest), unless)
        return Explanation(action.kind, "" if unless else key, True, (), unless, remote=True)
    expected[action.kind] = _Expected(None if before is None else content_of(before), (action.kind,))
    if not missing and store.path(key).exists():
        reasons: tuple[str, ...] = ("its artifact is damaged: a file was changed or is missing",)
    elif before is None:
        reasons = ("the artifact of the last run was deleted" if last else "this recipe has not run this stage before",)
    else:
        differences = (
            *_differences(before["ingredients"], ingredients),
            *(f"input {kind} was removed" for kind in missing),
        )
        reasons = differences or ("its artifact was deleted",)
    return Explanation(action.kind, "" if unless else key, False, reasons, unless)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name, word in (("code", "code"), ("plug-in", "plug-in"), ("files", "file"), ("inputs", "input")):
        # Another target uses other code, so a missing file need not be deleted.
        is_code = name in ("code", "plug-in")
        removed = "is no longer used" if is_code else "is no longer read" if name == "files" else "was removed"
        added = "is now used" if is_code else "is new"
        # Only names are shown, since digests are meaningless to readers.
        changed = [
            (".".join(path), added if before is None else removed if after is None else "changed")
            for path, before, after in _changes(old.get(name, {}), new.get(name, {}), ())
        ]
        for file_name, how in _by_folder(changed):
            yield f"{word} {file_name} {how}"
    for name, word in (("parameters", "parameter"), ("tools", "tool"), ("target", "target"), ("model", "model")):
        for path, before, after in _changes(old[name], new[name], ()):
            yield f"{word} {'.'.join(path)}: {_short(before)} -> {_short(after)}".replace(" :", ":")


def _by_folder(changed: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Group many changed files of one folder: `25 files of stages/ir/graph`, `changed`."""
    together = Counter((str(Path(name).parent), how) for name, how in changed)
    reported: set[tuple[str, str]] = set()
    for name, how in changed:
        folder = str(Path(name).parent)
        many = together[folder, how]
        if folder == "." or many <= _MAX_LISTED:
            yield name, how
        elif (folder, how) not in reported:
            reported.add((folder, how))
            yield f"{many} files of {folder}", how.replace("is ", "are ").replace("was ", "were ")


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield path, old and new value of each difference of two JSON values; None: missing."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in {**old, **new}:
            yield from _changes(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*path, str(index)))
    elif old != new:
        yield path, old, new


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else as_yaml(value)
    return text if len(text) <= 60 else text[:57] + "..."
