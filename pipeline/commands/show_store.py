"""`doit store`: what is in the artifact store, and whether it is as it was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline.artifacts.inventory import Entry, damages, inventory
from pipeline.artifacts.store import Store
from pipeline.commands.catalogue.listing import JSON, Record, in_columns
from pipeline.commands.command import Command
from pipeline.commands.reported import reported
from pipeline.errors import PipelineError
from pipeline.runs.workspace import Workspace
from stages.messages import escape
from stages.messages.wording import did_you_mean

_ACTIONS = ("size", "list", "verify")


class ShowStore(Command):
    """`doit store`."""

    name = "store"
    names = "what to show"
    doc_purpose = "say what is in the artifact store, and whether it is whole"
    doc_usage = "[size | list | verify] [--json]"
    doc_description = (
        "size: artifacts, bytes and seconds of work by stage. list: every artifact. verify: reads every file and "
        "compares it with its digest; exit code 1 where one differs. `doit gc` deletes."
    )
    cmd_options = (JSON,)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print it. Returns the exit code."""
        return reported(lambda: self._show(opt_values["json"], pos_args))

    def _show(self, as_json: bool, named: Sequence[str]) -> int:
        if len(named) > 1:
            raise PipelineError(f"doit store {named[0]} takes no '{escape.name(named[1])}'")
        action = named[0] if named else "size"
        if action not in _ACTIONS:
            message = f"doit store: '{escape.name(action)}' is none of {', '.join(_ACTIONS)}"
            raise PipelineError(message + did_you_mean(action, _ACTIONS))
        with Workspace() as workspace:
            store = workspace.store
            entries = inventory(store)
            if action == "verify":
                return _verify(store, entries, as_json)
        if action == "list":
            _print([_listed(one) for one in entries], _LISTED, as_json)
        else:
            records = _sizes(entries)
            _print(records, ("stage", "artifacts", "bytes", "seconds"), as_json)
            if not as_json:
                print(f"{workspace.shown(store.folder)}: {_summary(entries)}")
        return 0


_LISTED = ("key", "stage", "recipe", "bytes", "seconds", "created", "used", "damage")


def _listed(entry: Entry) -> Record:
    return {**asdict(entry), "seconds": f"{entry.seconds:.1f}"}


def _sizes(entries: Sequence[Entry]) -> list[Record]:
    """By stage, the largest first; seconds are those that the stages took, which a run that finds them saves."""
    found: dict[str, dict[str, Any]] = {}
    for one in entries:
        sums = found.setdefault(one.stage or "damaged", {"artifacts": 0, "bytes": 0, "seconds": 0.0})
        for field, value in (("artifacts", 1), ("bytes", one.bytes), ("seconds", one.seconds)):
            sums[field] += value
    largest = sorted(found.items(), key=lambda pair: (-pair[1]["bytes"], pair[0]))
    return [{"stage": stage, **sums, "seconds": round(sums["seconds"])} for stage, sums in largest]


def _summary(entries: Sequence[Entry]) -> str:
    text = f"{len(entries):,} artifacts, {sum(one.bytes for one in entries) / 1e6:,.1f} MB"
    used = sorted(one.used for one in entries)
    return f"{text}, last used {used[0]} to {used[-1]}" if used else text


def _verify(store: Store, entries: Sequence[Entry], as_json: bool) -> int:
    found = {entry: list(damages(store, entry)) for entry in entries}
    bad = {entry: wrong for entry, wrong in found.items() if wrong}
    if as_json:
        print(json.dumps([{**asdict(entry), "damage": wrong} for entry, wrong in bad.items()], indent=1))
    else:
        for entry, wrong in bad.items():
            what = f"{entry.stage} of {entry.recipe}" if entry.stage else "unknown"
            print(escape.line(f"{entry.key[:16]} {what}: {'; '.join(wrong)}"))
        print(f"{_summary(entries)}: {f'{len(bad)} damaged' if bad else 'all as they were written'}")
        if bad:
            print("a run that needs one makes it again; nothing else has to be done")
    return 1 if bad else 0


def _print(records: Sequence[Record], columns: Sequence[str], as_json: bool) -> None:
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, columns)))
