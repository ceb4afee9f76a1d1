"""`doit store push`: send artifacts that the remote store lacks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.artifacts.inventory import Entry, inventory
from pipeline.artifacts.manifest import SHARED, content_of
from pipeline.commands.command import command_option
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import PipelineError
from pipeline.recipes.targets import remote_store
from pipeline.remote.remote import FAILED, GONE, LACKING, SENT, THERE, Remote
from pipeline.remote.settings import remote_settings
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape

OPTIONS: tuple[Mapping[str, Any], ...] = (
    command_option("dry-run", "push: send nothing; print what would be sent"),
    command_option("days", "push: only artifacts that a run used in the last N days", str),
)
# Outcomes beside those of the remote store: results of a board are not sent, nor are damaged artifacts.
_OWN, _DAMAGED = "own", "damaged"
# The parameter that marks a stage that ran on a board.
_MOMENT = "moment"
_OUTCOMES = {
    SENT: "sent",
    LACKING: "to be sent",
    THERE: "already there",
    _OWN: "not shared, results of a board",
    _DAMAGED: "damaged (`doit store verify`)",
    GONE: "deleted meanwhile",
    FAILED: "not sent",
}


def days_of(options: Mapping[str, Any], action: str) -> float | None:
    """Return the number of days=, None without it.

    Raises PipelineError for a wrong number, or if an option of push is used with another action.
    """
    for name in ("dry-run", "days"):
        if options.get(name) and action != "push":
            raise PipelineError(f"--{name} is an option of `doit store push`, not of `doit store {action}`")
    days = options.get("days") or ""
    if days and not re.fullmatch(r"\d{1,6}(\.\d*)?", days):
        raise PipelineError(f"doit store push: days={escape.name(days)}: expected a number of days, such as 7")
    if days and float(days) == 0:
        raise PipelineError(
            f"doit store push: days={days}: expected more than 0; without days=, all artifacts are sent"
        )
    return float(days) if days else None


def remote_of(workspace: Workspace) -> Remote:
    """Return the remote store. Raises PipelineError if none is set or its setting is wrong."""
    settings = remote_settings(remote_store(workspace.project))
    if settings is not None and settings.wrong:
        raise PipelineError(settings.wrong)
    remote = workspace.remote
    if remote is None:
        raise PipelineError("no remote store is set", hint="docs/explanation/store.md shows how to set one")
    return remote


_EVER = 100_000.0  # days: longer ago than any artifact


def push(workspace: Workspace, entries: Sequence[Entry], days: float | None, *, dry_run: bool, as_json: bool) -> int:
    """Send the artifacts, or print which would be sent. Returns the exit code.

    Raises PipelineError if the remote store did not accept all of them.
    """
    remote = remote_of(workspace)
    shown = remote.settings.shown
    if remote.settings.read_only and not dry_run:
        raise PipelineError(f"{shown} is read-only here", hint="FIRMLINE_REMOTE_READ_ONLY=0 allows writing")
    if wrong := remote.problem(reads_only=dry_run):
        raise PipelineError(f"{shown} {wrong}")
    if days is not None:
        since = (datetime.now(UTC) - timedelta(days=min(days, _EVER))).date().isoformat()
        entries = [entry for entry in entries if entry.used >= since]
    by_outcome: dict[str, list[Entry]] = {}
    records = []
    for entry, outcome in _outcomes(workspace, remote, entries, dry_run=dry_run):
        by_outcome.setdefault(outcome, []).append(entry)
        records.append({**asdict(entry), "outcome": outcome})
        if not as_json and outcome in (SENT, LACKING, _DAMAGED, GONE):
            line = f"{_OUTCOMES[outcome]}: {entry.key[:16]} {entry.stage} of {entry.recipe}, {entry.bytes:,} bytes"
            print(escape.line(line), flush=True)
    if as_json:
        print(json.dumps(sorted(records, key=lambda entry: str(entry["key"])), indent=1))
    else:
        parts = [
            f"{len(entries_of):,} {_OUTCOMES[name]} ({_megabytes(entries_of)})"
            for name in _OUTCOMES
            if (entries_of := by_outcome.get(name))
        ]
        print(escape.line(f"{shown}: {', '.join(parts) or 'nothing to send'}"))
    if failed := by_outcome.get(FAILED):
        raise PipelineError(f"{shown} did not accept {len(failed):,} of {len(entries):,} artifacts", hint="push again")
    return PENDING if by_outcome.keys() & {LACKING, _DAMAGED, GONE} else 0


def _outcomes(
    workspace: Workspace, remote: Remote, entries: Sequence[Entry], *, dry_run: bool
) -> Iterator[tuple[Entry, str]]:
    """Yield each entry with its outcome, in the order of completion."""
    waiting: dict[Future[str], Entry] = {}
    board_results = _board_results(workspace)
    for entry in entries:
        artifact = workspace.store.find(entry.key)
        if artifact is None:
            yield entry, _DAMAGED if workspace.store.path(entry.key).exists() else GONE
        elif entry.key in board_results:
            yield entry, _OWN
        else:
            waiting[remote.query(entry.key) if dry_run else remote.send(artifact, look=True)] = entry
    for done in as_completed(waiting):
        yield waiting[done], done.result()


def _board_results(workspace: Workspace) -> set[str]:
    """Return the keys of a board's results and of artifacts derived from them."""
    store = workspace.store
    manifests = {item.key: store.manifest(item.key) for item in inventory(store)}
    known = {key: manifest for key, manifest in manifests.items() if manifest is not None}
    keys = {
        key
        for key, manifest in known.items()
        if not manifest.get(SHARED, True) or _MOMENT in manifest["ingredients"].get("parameters", {})
    }
    while True:
        # The same bytes from a simulation are not a board's result.
        contents = {content_of(known[key]) for key in keys} - {content_of(known[key]) for key in known.keys() - keys}
        more = {
            key for key, item in known.items() if contents & {*item["ingredients"].get("inputs", {}).values()}
        } - keys
        if not more:
            return keys
        keys |= more


def _megabytes(entries: Sequence[Entry]) -> str:
    return f"{sum(entry.bytes for entry in entries) / 1e6:,.1f} MB"
