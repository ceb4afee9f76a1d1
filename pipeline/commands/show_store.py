"""`doit store`: what is in the artifact store, and whether it is as it was written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline.artifacts.inventory import Entry, damages, inventory
from pipeline.artifacts.store import Store
from pipeline.commands.catalogue.listing import Record, in_columns
from pipeline.commands.command import JSON, Command
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.push_store import OPTIONS, days_of, push, remote_of
from pipeline.commands.reported import reported
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_group
from pipeline.runs.workspace import Workspace
from stages.messages import escape
from stages.messages.wording import did_you_mean

_ACTIONS = ("size", "list", "verify", "remote", "push")


class ShowStore(Command):
    """`doit store`."""

    name = "store"
    names = "what to show"
    doc_purpose = "say what is in the artifact store, and whether it is whole"
    doc_usage = "[size | list | verify | remote | push [--days N] [--dry-run]] [--json]"
    doc_description = (
        "size: artifacts, bytes and seconds of work by stage. list: every artifact. verify: reads every file and "
        "compares it with its digest; exit code 3 where one differs. remote: whether the remote store can be read and "
        "written; exit code 3 where it cannot. push: sends the remote store what it lacks; with --dry-run it says what "
        "that would be; exit code 3 where there is something, or something damaged stays here. `doit gc` deletes."
    )
    cmd_options = (JSON, *OPTIONS)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Print it. Returns the exit code."""
        return reported(lambda: self._show(opt_values, pos_args))

    def _show(self, given: Mapping[str, Any], named: Sequence[str]) -> int:
        as_json = given["json"]
        if len(named) > 1:
            raise PipelineError(f"doit store {named[0]} takes no '{escape.name(named[1])}'")
        action = named[0] if named else "size"
        if action not in _ACTIONS:
            message = f"doit store: '{escape.name(action)}' is none of {', '.join(_ACTIONS)}"
            raise PipelineError(message + did_you_mean(action, _ACTIONS))
        days = days_of(given, action)
        with Workspace(install=install_group) as workspace:
            store = workspace.store
            entries = inventory(store)
            if action == "verify":
                return _verify(store, entries, as_json)
            if action == "remote":
                return _try_remote(workspace, as_json)
            if action == "push":
                return push(workspace, entries, days, dry_run=given["dry-run"], as_json=as_json)
        if action == "list":
            _print([_listed(one) for one in entries], _LISTED, as_json)
        else:
            records = _sizes(entries)
            _print(records, ("stage", "artifacts", "bytes", "seconds"), as_json)
            if not as_json:
                print(f"{workspace.display_path(store.folder)}: {_summary(entries)}")
                _print_remote(workspace, entries)
        return 0


_LISTED = ("key", "stage", "recipe", "bytes", "seconds", "created", "used", "remote", "damage")


def _print_remote(workspace: Workspace, entries: Sequence[Entry]) -> None:
    remote = workspace.remote
    for place in sorted({one.remote for one in entries if one.remote} | ({remote.settings.shown} if remote else set())):
        came = [one for one in entries if one.remote == place]
        now = remote is not None and remote.settings.shown == place
        how = (", only read" if remote is not None and remote.settings.read_only else "") if now else ", not used now"
        text = f"{len(came):,} of them, {sum(one.bytes for one in came) / 1e6:,.1f} MB, came from it"
        print(escape.line(f"{place} (remote{how}): {text}"))


def _try_remote(workspace: Workspace, as_json: bool) -> int:
    remote = remote_of(workspace)
    wrong = remote.trouble()
    if as_json:
        print(json.dumps({"remote": remote.settings.shown, "use": "" if wrong else remote.use, "problem": wrong}))
    else:
        print(escape.line(f"{remote.settings.shown}: {wrong or remote.use}"))
    return PENDING if wrong else 0


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
    return PENDING if bad else 0


def _print(records: Sequence[Record], columns: Sequence[str], as_json: bool) -> None:
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, columns)))
