"""Run the stages of all boards in parallel, and read the figures of each.

Each board has the actions of `doit run target=BOARD` up to the simulation.
They run in sessions with the store and the executor of `doit run`. So boards share equal actions, and a later
`doit run` finds them in the store. If an action of several boards fails, it is not repeated.

If a network is too large for a board, its sizes are those of the firmware for the same board with more memory.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands.fit.row import CRASHED, FITS, NOT_MEASURED, REFUSED, TOO_LARGE, Row, needs
from pipeline.commands.report_errors import wants_traceback
from pipeline.errors import PipelineError, RecipeError, StageFailed, StoreError, ToolError, describe_unexpected
from pipeline.keys.planner import Action
from pipeline.recipes.loader import LoadedRecipe
from pipeline.runs.executor import Executor
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from stages.backends.targets.memory import Memory
from stages.backends.targets.spec import Target
from stages.compile.sizes import region_ends
from stages.report.build import ram_bytes
from stages.report.estimate import estimated_cycles
from stages.simulate.simulate import expected_instructions
from stages.support.messages.stage_error import DoesNotFit

if TYPE_CHECKING:
    from pipeline.commands.fit.request import Request
    from pipeline.terminal.progress import ProgressDisplay

# A failure of these stages concerns the network, not the board.
_OF_NETWORK = ("ptq", "import", "layout", "quantize")
_ALIGNMENT = 16  # of buffers in the arena


def measure(
    request: Request, workspace: Workspace, display: ProgressDisplay, jobs: int, executor: Executor | None = None
) -> list[Row]:
    """Return a row for each board of the request, in its order.

    Raises PipelineError if the store cannot be used, or if no board supports the network.
    """
    measurement = _Measurement(request, workspace, display, executor)
    # One board of each core first: other boards wait for its artifacts.
    cores = {target.core: target.name for target in reversed(request.targets)}
    targets = sorted(request.targets, key=lambda target: cores[target.core] != target.name)
    pool = ThreadPoolExecutor(jobs)
    try:
        rows = {row.board: row for row in pool.map(measurement.row, targets)}
    finally:
        # After Ctrl-C, start no further boards.
        pool.shutdown(wait=True, cancel_futures=True)
    if len(measurement.errors) == len(targets):
        raise measurement.errors[0]
    return [rows[target.name] for target in request.targets]


class _Measurement:
    """Measures boards, in several threads.

    `errors` are failures that concern the network or its recipe.
    """

    def __init__(
        self, request: Request, workspace: Workspace, display: ProgressDisplay, executor: Executor | None
    ) -> None:
        self._executor = executor
        self._request = request
        self._workspace = workspace
        self._display = display
        self._lock = threading.Lock()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._failures: dict[str, PipelineError] = {}
        self.errors: list[PipelineError] = []

    def row(self, target: Target) -> Row:
        """Return the row of a board. Raises StoreError."""
        assert target.memory is not None
        row = Row(
            target.name,
            target.core,
            target.board.title if target.board is not None else "",
            CRASHED,
            ram_available_bytes=target.memory.bytes_of(written=True),
            rom_available_bytes=target.memory.bytes_of(written=False),
            clock_hz=target.board.clock if target.board is not None else None,
        )
        try:
            measured = self._measured(row, target)
            return self._limited(row, measured, target) or measured
        except StoreError:
            raise
        except PipelineError as error:
            if isinstance(error, RecipeError) or (isinstance(error, StageFailed) and error.kind in _OF_NETWORK):
                self.errors.append(error)
            verdict = NOT_MEASURED if isinstance(error, ToolError) else CRASHED
            verdict = REFUSED if isinstance(error, RecipeError | StageFailed) else verdict
            return replace(row, verdict=verdict, reason=str(error))
        except Exception as error:  # of any class: it must not stop the other boards
            if wants_traceback():
                raise
            return replace(row, reason=describe_unexpected(error))
        finally:
            self._display.end("", target.name)

    def _limited(self, row: Row, measured: Row, target: Target) -> Row | None:
        """Return the row of a board that the network fits with an arena as large as the free RAM.

        `measured` is the result without that limit. None if the board does not lack only RAM, the recipe has a limit,
        or the network does not fit within it.
        """
        with self._lock:
            loaded = self._request.load(target, self._workspace.project, self._workspace.registry)
        limit = _free_for_arena(measured)
        if limit is None or loaded.recipe.memory.arena_limit is not None:
            return None
        try:
            limited = self._measured(replace(row, arena_limit=limit), target)
        except StoreError:
            raise
        except PipelineError:
            return None
        if limited.verdict != FITS:
            return None
        before, after = measured.expected_instructions, limited.expected_instructions
        return replace(limited, extra=round(after / before - 1, 6) if before and after else None)

    def _measured(self, row: Row, target: Target) -> Row:
        with self._lock:
            loaded = self._request.load(target, self._workspace.project, self._workspace.registry, row.arena_limit)
            emitted, compiled, simulated = (_stage_with_role(loaded, role) for role in ("emit", "compile", "simulate"))
            last = simulated or compiled
            plan = self._workspace.planner.plan(loaded, last)
        display = _BoardDisplay(target.name, self._display)
        with closing(Session(self._workspace, plan, display, last, self._executor, record=False)) as session:
            if not session.is_done(plan[compiled]):
                known = self._too_large(row, loaded, stored_only=True)
                if known is not None:
                    return known
            try:
                self._run(session, compiled)
            except StageFailed as error:
                if not isinstance(error.__cause__, DoesNotFit):
                    raise
                large = self._too_large(row, loaded, stored_only=False)
                return large or replace(row, verdict=TOO_LARGE, reason=str(error))
            row = _with_sizes(replace(row, verdict=FITS), session.folders[compiled], session.folders[emitted])
            if not simulated:
                return row
            try:
                self._run(session, simulated)
            except StageFailed as error:
                return replace(row, reason=str(error))
            return _with_counts(row, session.folders[compiled], session.folders[simulated], target)

    def _too_large(self, row: Row, loaded: LoadedRecipe, *, stored_only: bool) -> Row | None:
        """Return the row of a board that is too small, with the sizes for a larger one.

        Returns None if these sizes are not known, or do not exceed the board's memory.
        """
        larger = replace(loaded, target=with_larger_memory(loaded.target))
        emitted, compiled = _stage_with_role(loaded, "emit"), _stage_with_role(loaded, "compile")
        with self._lock:
            plan = self._workspace.planner.plan(larger, compiled)
        plan = replace(plan, target=f"{plan.target}-larger-memory")  # in the name of its log's folder
        display = _BoardDisplay(row.board, self._display)
        with closing(Session(self._workspace, plan, display, compiled, self._executor, record=False)) as session:
            if not session.is_done(plan[compiled]):
                if stored_only:
                    return None
                try:
                    self._run(session, compiled)
                except StageFailed:
                    return None
            memory, linked = loaded.target.memory, larger.target.memory
            assert memory is not None and linked is not None
            row = _with_sizes(replace(row, verdict=TOO_LARGE), session.folders[compiled], session.folders[emitted])
            row = _with_larger_sizes(row, session.folders[compiled], memory, linked)
        return row if row.missing else None

    def _run(self, session: Session, last: str) -> None:
        """Run the stages up to `last`. Raises PipelineError."""
        for action in session.plan:
            if not session.is_done(action):
                session.preflight_check()
                self._run_action(session, action)
            if action.kind == last:
                return

    def _run_action(self, session: Session, action: Action) -> None:
        """Run an action once for all boards; raise its error again for the others."""
        with self._lock:
            lock = self._locks[action.identity]
        with lock:
            if action.identity in self._failures:
                raise self._failures[action.identity]
            try:
                session.run(action, shared=True)
            except PipelineError as error:
                self._failures[action.identity] = error
                raise


class _BoardDisplay:
    """A display with one progress line for each board."""

    def __init__(self, board: str, display: ProgressDisplay) -> None:
        self._board, self._display = board, display

    def progress(self, recipe: str, kind: str, message: str, fraction: float | None) -> None:
        """Show a stage's progress on the board's line."""
        self._display.progress("", self._board, f"{kind}: {message}", fraction)


def _free_for_arena(row: Row) -> int | None:
    """Return the bytes of RAM that a board has for the arena, None unless it lacks RAM only."""
    if row.verdict != TOO_LARGE or row.arena_bytes is None or not row.missing_ram_bytes or row.missing_rom_bytes:
        return None
    free = (row.arena_bytes - row.missing_ram_bytes) // _ALIGNMENT * _ALIGNMENT
    return free if free > 0 else None


def _stage_with_role(loaded: LoadedRecipe, role: str) -> str:
    """Return the name of the recipe's last stage with this role, '' if there is none.

    Raises RecipeError for another missing stage.
    """
    names = [link.name for link in loaded.sequence if link.stage.role == role]
    if not names and role == "simulate":
        return ""
    if not names:
        raise loaded.sources.error(f"the recipe has no stage {role}, which doit fit needs", ("stages",))
    return names[-1]


def _with_sizes(row: Row, compiled: Path, emitted: Path) -> Row:
    """Return the row with the sizes of a firmware."""
    sizes = json.loads((compiled / "sizes.json").read_text())
    model = json.loads((emitted / "model.json").read_text())
    expected = round(expected_instructions(model))
    return replace(
        row,
        ram_bytes=sizes["ram_bytes"],
        rom_bytes=sizes["rom_bytes"],
        missing_ram_bytes=0,
        missing_rom_bytes=0,
        regions=sizes["regions"],
        instructions=expected,
        expected_instructions=expected,
        arena_bytes=model["arena_bytes"],
    )


def _with_larger_sizes(row: Row, compiled: Path, board: Memory, linked: Memory) -> Row:
    """Return the row with the bytes that a firmware needs.

    The firmware is linked for more memory than the board has.
    """
    ends = region_ends(compiled / "firmware.elf", linked)
    regions = [
        {
            "name": name,
            "written": region.is_written,
            "used": ends[name],
            "length": region.length,
            "same_as": region.same_as,
        }
        for name, region in board.regions.items()
    ]
    needed, missing = {True: 0, False: 0}, {True: 0, False: 0}
    for need, available, written in needs(regions):
        needed[written] += need
        missing[written] += max(need - available, 0)
    return replace(
        row,
        ram_bytes=needed[True],
        rom_bytes=needed[False],
        missing_ram_bytes=missing[True],
        missing_rom_bytes=missing[False],
        regions=regions,
    )


def _with_counts(row: Row, compiled: Path, simulated: Path, target: Target) -> Row:
    """Return the row with the results of a simulation.

    They are RAM with the measured stack, instructions, cycles and time.
    """
    counts = json.loads((simulated / "counts.json").read_text())
    sizes = json.loads((compiled / "sizes.json").read_text())
    if target.counter == "none":
        return row
    total = counts["inferences"][0]["total"]
    row = replace(row, ram_bytes=ram_bytes(sizes, counts))
    if target.accelerator is not None:
        ms = None if row.clock_hz is None else round(1000 * total / row.clock_hz, 6)
        row = replace(row, estimated_ms=ms, least_ms=ms, most_ms=ms)
        return replace(row, instructions=None, estimated_cycles=total, timing=target.accelerator.kind)
    row = replace(row, instructions=total)
    cycles = estimated_cycles(counts, target.model_dump(mode="json"))
    if cycles is None:
        return row
    return replace(
        row,
        estimated_cycles=None if cycles["is_range"] else cycles["total"],
        estimated_ms=cycles["milliseconds"],
        least_ms=cycles["least_milliseconds"],
        most_ms=cycles["most_milliseconds"],
        estimated_uj=cycles["microjoules"],
        least_uj=cycles["least_microjoules"],
        most_uj=cycles["most_microjoules"],
        timing=cycles["model"],
        accuracy=cycles["accuracy"],
    )


_MORE = 32 << 20


def with_larger_memory(target: Target) -> Target:
    """Return the target with 32 MB more in each region that is the last choice for its content.

    Other regions keep their lengths, so that they are filled first, as on the board. Regions keep their addresses,
    unless a larger one before them needs the space. The result cannot be simulated.
    """
    memory = target.memory
    assert memory is not None
    read_only = [name for name in memory.homes("weights") if not memory.regions[name].is_written]
    last = {memory.homes("arena")[-1], memory.home("code"), memory.home("constants"), *read_only[-1:]}
    larger = {name for region in last for name in memory.same(memory.regions[region].same_as or region)}
    regions: dict[str, Any] = {}
    end = 0
    for name, region in sorted(memory.regions.items(), key=lambda item: item[1].origin):
        length = region.length + (_MORE if name in larger else 0)
        regions[name] = region.model_copy(update={"origin": max(region.origin, end), "length": length})
        end = regions[name].end
    changed = Memory(stack=memory.stack, reserve=memory.reserve, **{name: regions[name] for name in memory.regions})
    return target.model_copy(update={"memory": changed, "simulated": None})
