"""`doit store push`: what a store has, and the remote store lacks, is sent there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.artifacts.inventory import Entry, inventory
from pipeline.artifacts.manifest import SHARED, content_of
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import PipelineError
from pipeline.recipes.targets import remote_store
from pipeline.remote.remote import FAILED, GONE, LACKING, SENT, THERE, Remote
from pipeline.remote.settings import remote_settings
from pipeline.runs.workspace import Workspace
from stages.messages import escape

OPTIONS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "dry-run",
        "long": "dry-run",
        "short": "",
        "type": bool,
        "default": False,
        "help": "push: send nothing, and say what would be sent",
    },
    {
        "name": "days",
        "long": "days",
        "short": "",
        "type": str,
        "default": "",
        "help": "push: only what a run used within so many days",
    },
)
# Beside what the remote store says of one: it may not be sent, or is not as it was written.
_OWN, _DAMAGED = "own", "damaged"
# Among the parameters of a stage that ran on a board.
_MOMENT = "moment"
_TOLD = {
    SENT: "sent",
    LACKING: "to be sent",
    THERE: "there already",
    _OWN: "of a board, which nobody can ask for",
    _DAMAGED: "damaged (`doit store verify`)",
    GONE: "gone meanwhile",
    FAILED: "not sent",
}


def days_of(given: Mapping[str, Any], action: str) -> float | None:
    """The number of --days. Raises PipelineError where it is none, or an option of push goes with another word."""
    for name in ("dry-run", "days"):
        if given.get(name) and action != "push":
            raise PipelineError(f"--{name} goes with `doit store push`, not with {action}")
    days = given.get("days") or ""
    if days and not re.fullmatch(r"\d{1,6}(\.\d*)?", days):
        raise PipelineError(f"doit store push: --days {escape.name(days)}: should be a number of days, such as 7")
    if days and float(days) == 0:
        raise PipelineError(f"doit store push: --days {days}: should be more than 0; without --days all are sent")
    return float(days) if days else None


def remote_of(workspace: Workspace) -> Remote:
    """The remote store. Raises PipelineError where there is none, or what names it is wrong."""
    settings = remote_settings(remote_store(workspace.project))
    if settings is not None and settings.wrong:
        raise PipelineError(settings.wrong)
    remote = workspace.remote
    if remote is None:
        raise PipelineError("there is no remote store", hint="docs/explanation/store.md says how to name one")
    return remote


_EVER = 100_000.0  # days: longer ago than any artifact


def push(workspace: Workspace, entries: Sequence[Entry], days: float | None, *, dry_run: bool, as_json: bool) -> int:
    """Send them, or say which would be. Returns the exit code. Raises PipelineError where not all of them are there."""
    remote = remote_of(workspace)
    shown = remote.settings.shown
    if remote.settings.read_only and not dry_run:
        raise PipelineError(f"{shown} is only read from here", hint="FIRMLINE_REMOTE_READ_ONLY=0 has it written")
    if wrong := remote.trouble(reads_only=dry_run):
        raise PipelineError(f"{shown} {wrong}")
    if days is not None:
        since = (datetime.now(UTC) - timedelta(days=min(days, _EVER))).date().isoformat()
        entries = [one for one in entries if one.used >= since]
    found: dict[str, list[Entry]] = {}
    records = []
    for entry, outcome in _pushed(workspace, remote, entries, dry_run=dry_run):
        found.setdefault(outcome, []).append(entry)
        records.append({**asdict(entry), "outcome": outcome})
        if not as_json and outcome in (SENT, LACKING, _DAMAGED, GONE):
            line = f"{_TOLD[outcome]}: {entry.key[:16]} {entry.stage} of {entry.recipe}, {entry.bytes:,} bytes"
            print(escape.line(line), flush=True)
    if as_json:
        print(json.dumps(sorted(records, key=lambda one: str(one["key"])), indent=1))
    else:
        parts = [f"{len(ones):,} {_TOLD[name]} ({_megabytes(ones)})" for name in _TOLD if (ones := found.get(name))]
        print(escape.line(f"{shown}: {', '.join(parts) or 'nothing to send'}"))
    if failed := found.get(FAILED):
        raise PipelineError(f"{shown} has not taken {len(failed):,} of {len(entries):,} artifacts", hint="push again")
    return PENDING if found.keys() & {LACKING, _DAMAGED, GONE} else 0


def _pushed(
    workspace: Workspace, remote: Remote, entries: Sequence[Entry], *, dry_run: bool
) -> Iterator[tuple[Entry, str]]:
    """Each with what became of it, in the order in which that is known."""
    waiting: dict[Future[str], Entry] = {}
    own = _own(workspace)
    for entry in entries:
        artifact = workspace.store.find(entry.key)
        if artifact is None:
            yield entry, _DAMAGED if workspace.store.path(entry.key).exists() else GONE
        elif entry.key in own:
            yield entry, _OWN
        else:
            waiting[remote.asked(entry.key) if dry_run else remote.send(artifact, look=True)] = entry
    for done in as_completed(waiting):
        yield waiting[done], done.result()


def _own(workspace: Workspace) -> set[str]:
    """Keys of what a board did, and of what is made of that: those that say so, or that tell by their ingredients."""
    store = workspace.store
    manifests = {one.key: store.manifest(one.key) for one in inventory(store)}
    known = {key: manifest for key, manifest in manifests.items() if manifest is not None}
    own = {
        key
        for key, manifest in known.items()
        if not manifest.get(SHARED, True) or _MOMENT in manifest["ingredients"].get("parameters", {})
    }
    while True:
        # Bytes that a simulation left as well tell nothing.
        left = {content_of(known[key]) for key in own} - {content_of(known[key]) for key in known.keys() - own}
        more = {key for key, one in known.items() if left & {*one["ingredients"].get("inputs", {}).values()}} - own
        if not more:
            return own
        own |= more


def _megabytes(entries: Sequence[Entry]) -> str:
    return f"{sum(one.bytes for one in entries) / 1e6:,.1f} MB"
