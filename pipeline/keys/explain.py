"""Why a stage will run: what differs between its key's ingredients and those that the recipe had last."""

from __future__ import annotations

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

# So many changed files of one folder are named.
_MOST_OF_A_FOLDER = 4


@dataclass(frozen=True)
class Explanation:
    """One stage: whether the store has its artifact, and if not, why.

    `unless` has the stages that will run before it and may change what it consumes: if they leave the bytes of before,
    it is `cached`, or runs for these `reasons`. The `key` is '' where it is not known before they have run.
    With `remote` it is cached in the remote store only.
    """

    kind: str
    key: str
    cached: bool
    reasons: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    remote: bool = False


@dataclass(frozen=True)
class _Expected:
    """The content of an artifact, as far as it is known: what it is or, if stages in `unless` change nothing, will be.

    None when there is nothing to go by.
    """

    content: str | None
    unless: tuple[str, ...] = ()


def explain(
    plan: Plan, store: Store, elsewhere: Callable[[str], Mapping[str, Any] | None] = lambda key: None
) -> list[Explanation]:
    """One explanation per stage, in running order; `elsewhere` gives the manifest of what the remote store has."""
    last = store.runs.find(plan.recipe, plan.target)
    keys = last.keys if last is not None else {}
    expected: dict[str, _Expected] = {}
    return [_explain(action, store, keys.get(action.kind), expected, elsewhere) for action in plan]


def code_folders(action: Action) -> list[str]:
    """Folders whose code is in a stage's key: `stages`, `stages/ir/graph`, `stages/backends/kernels/{include, tir}`.

    Of files in no folder, a plug-in's, the names.
    """
    found: dict[str, set[str]] = {}
    for name in sorted(action.code):
        parts = Path(name).parts[:-1]
        found.setdefault("/".join(parts[:2]) or name, set()).update(parts[2:3])
    return [f"{top}/{{{', '.join(sorted(below))}}}" if below else top for top, below in sorted(found.items())]


def comparison_text(plan: Plan, store: Store) -> str:
    """Which run the reasons compare with, and what that one was given that this one is not, and the other way round.

    `compared with its run of 2026-11-21 04:10, which had target=rv32-rvp and not set=stages.emit.unroll=8`
    """
    last = store.runs.find(plan.recipe, plan.target)
    if last is None:
        return "of which no run is noted"
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
    elsewhere: Callable[[str], Mapping[str, Any] | None],
) -> Explanation:
    """One stage; what it leaves is added to `expected`, by its name."""
    consumed = {kind: expected[name] for kind, name in action.link.inputs.items()}
    unless = tuple(dict.fromkeys(name for one in consumed.values() for name in one.unless))
    before = store.manifest(last) if last else None
    had = before["ingredients"]["inputs"] if before is not None else {}
    missing = [kind for kind, one in consumed.items() if one.content is None]
    ingredients = action.consuming({kind: one.content or had.get(kind, "") for kind, one in consumed.items()})
    key = digest_of(ingredients)
    found = None if missing else store.find(key)
    if found is not None:
        expected[action.kind] = _Expected(found.content, unless)
        return Explanation(action.kind, "" if unless else key, True, (), unless)
    if not missing and (there := elsewhere(key)) is not None:
        expected[action.kind] = _Expected(content_of(there), unless)
        return Explanation(action.kind, "" if unless else key, True, (), unless, remote=True)
    expected[action.kind] = _Expected(None if before is None else content_of(before), (action.kind,))
    if not missing and store.path(key).exists():
        reasons: tuple[str, ...] = ("its artifact is damaged: a file was altered or is missing",)
    elif before is None:
        reasons = ("no artifact of an earlier run is left" if last else "this recipe has not run this stage before",)
    else:
        differences = (
            *_differences(before["ingredients"], ingredients),
            *(f"input {kind} is gone" for kind in missing),
        )
        reasons = differences or ("its artifact was deleted",)
    return Explanation(action.kind, "" if unless else key, False, reasons, unless)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name, word in (("code", "code"), ("plug-in", "plug-in"), ("files", "file"), ("inputs", "input")):
        # Another target has other code: what is there no longer may only be of no use.
        is_code = name in ("code", "plug-in")
        gone = "is used no longer" if is_code else "is read no longer" if name == "files" else "is gone"
        fresh = "is used now" if is_code else "is new"
        # A digest tells nobody anything: only what changed is named.
        changed = [
            (".".join(path), fresh if before is None else gone if after is None else "changed")
            for path, before, after in _changes(old.get(name, {}), new.get(name, {}), ())
        ]
        for what, how in _by_folder(changed):
            yield f"{word} {what} {how}"
    for name, word in (("parameters", "parameter"), ("tools", "tool"), ("target", "target"), ("model", "model")):
        for path, before, after in _changes(old[name], new[name], ()):
            yield f"{word} {'.'.join(path)}: {_short(before)} -> {_short(after)}".replace(" :", ":")


def _by_folder(changed: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Files and how they changed; many of one folder as one: `25 files of stages/ir/graph`, `changed`."""
    together = Counter((str(Path(name).parent), how) for name, how in changed)
    told: set[tuple[str, str]] = set()
    for name, how in changed:
        folder = str(Path(name).parent)
        many = together[folder, how]
        if folder == "." or many <= _MOST_OF_A_FOLDER:
            yield name, how
        elif (folder, how) not in told:
            told.add((folder, how))
            yield f"{many} files of {folder}", how.replace("is ", "are ")


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """The smallest parts in which two JSON values differ; None stands for what is not there."""
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
