"""`doit store`: show and verify the artifact store."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline.artifacts.inventory import Entry, damages, inventory
from pipeline.artifacts.store import Store
from pipeline.commands.catalogue.listing import Record, in_columns
from pipeline.commands.command import JSON, Command
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.push_store import OPTIONS, days_of, push, remote_of
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_group
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

_ACTIONS = ("size", "list", "verify", "remote", "push")


class ShowStore(Command):
    """`doit store`."""

    name = "store"
    group = "maintain"
    names_shown = "ACTION"
    examples = (
        ("", "size of the store by stage"),
        ("list", "all artifacts"),
        ("verify", "compare every file with its digest"),
        ("remote", "whether the remote store works"),
        ("push days=7 --dry-run", "what would be sent to the remote store"),
    )
    keys_help = (("NAME", "size (default), list, verify, remote or push"),)
    names = "action"
    doc_purpose = "show, verify or push the artifact store"
    doc_usage = "[size | list | verify | remote | push [days=N] [--dry-run]] [--json]"
    doc_description = (
        "size: artifacts, bytes and seconds of work by stage. list: all artifacts. verify: compares every file with "
        "its digest; exits with 3 if one differs. remote: checks whether the remote store can be read and written; "
        "exits with 3 if not. push: sends artifacts that the remote store lacks; --dry-run only lists them and exits "
        "with 3 if there are any. Damaged artifacts are not sent; push then exits with 3. `doit gc` deletes artifacts."
    )
    cmd_options = (JSON, *OPTIONS)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        as_json = options["json"]
        if len(named) > 1:
            raise PipelineError(f"doit store {named[0]} does not take '{escape.name(named[1])}'")
        action = named[0] if named else "size"
        if action not in _ACTIONS:
            message = f"doit store: '{escape.name(action)}' is not one of {', '.join(_ACTIONS)}"
            raise PipelineError(message + did_you_mean(action, _ACTIONS))
        days = days_of(options, action)
        with Workspace(install=install_group) as workspace:
            store = workspace.store
            entries = inventory(store)
            if action == "verify":
                return _verify(store, entries, as_json)
            if action == "remote":
                return _try_remote(workspace, as_json)
            if action == "push":
                return push(workspace, entries, days, dry_run=options["dry-run"], as_json=as_json)
        if action == "list":
            _print([_listed(entry) for entry in entries], _LISTED, as_json)
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
    for place in sorted(
        {entry.remote for entry in entries if entry.remote} | ({remote.settings.shown} if remote else set())
    ):
        received = [entry for entry in entries if entry.remote == place]
        now = remote is not None and remote.settings.shown == place
        how = (", read-only" if remote is not None and remote.settings.read_only else "") if now else ", not in use"
        text = f"{len(received):,} artifacts, {sum(entry.bytes for entry in received) / 1e6:,.1f} MB, came from it"
        print(escape.line(f"{place} (remote{how}): {text}"))


def _try_remote(workspace: Workspace, as_json: bool) -> int:
    remote = remote_of(workspace)
    wrong = remote.problem()
    if as_json:
        print(json.dumps({"remote": remote.settings.shown, "use": "" if wrong else remote.use, "problem": wrong}))
    else:
        print(escape.line(f"{remote.settings.shown}: {wrong or remote.use}"))
    return PENDING if wrong else 0


def _listed(entry: Entry) -> Record:
    return {**asdict(entry), "seconds": f"{entry.seconds:.1f}"}


def _sizes(entries: Sequence[Entry]) -> list[Record]:
    """Return sums by stage, the largest first. Seconds are the time that a cached run saves."""
    by_stage: dict[str, dict[str, Any]] = {}
    for entry in entries:
        sums = by_stage.setdefault(entry.stage or "damaged", {"artifacts": 0, "bytes": 0, "seconds": 0.0})
        for field, value in (("artifacts", 1), ("bytes", entry.bytes), ("seconds", entry.seconds)):
            sums[field] += value
    largest = sorted(by_stage.items(), key=lambda pair: (-pair[1]["bytes"], pair[0]))
    return [{"stage": stage, **sums, "seconds": round(sums["seconds"])} for stage, sums in largest]


def _summary(entries: Sequence[Entry]) -> str:
    text = f"{len(entries):,} artifacts, {sum(entry.bytes for entry in entries) / 1e6:,.1f} MB"
    used = sorted(entry.used for entry in entries)
    return f"{text}, last used {used[0]} to {used[-1]}" if used else text


def _verify(store: Store, entries: Sequence[Entry], as_json: bool) -> int:
    damages_of = {entry: list(damages(store, entry)) for entry in entries}
    bad = {entry: wrong for entry, wrong in damages_of.items() if wrong}
    if as_json:
        print(json.dumps([{**asdict(entry), "damage": wrong} for entry, wrong in bad.items()], indent=1))
    else:
        for entry, wrong in bad.items():
            what = f"{entry.stage} of {entry.recipe}" if entry.stage else "unknown"
            print(escape.line(f"{entry.key[:16]} {what}: {'; '.join(wrong)}"))
        print(f"{_summary(entries)}: {f'{len(bad)} damaged' if bad else 'none damaged'}")
        if bad:
            print("runs rebuild damaged artifacts when they need them; no action is necessary")
    return PENDING if bad else 0


def _print(records: Sequence[Record], columns: Sequence[str], as_json: bool) -> None:
    print(json.dumps(records, indent=1) if as_json else "\n".join(in_columns(records, columns)))
