"""Figures of docs/explanation/timing.md: models, boards, networks chosen by cycles, published times."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.api import run_recipe
from pipeline.commands.bench.silicon_closed import NETWORKS as ZOO
from pipeline.commands.fit.row import FITS
from pipeline.commands.fit.row import Row as Fit
from pipeline.project import Project
from pipeline.recipes.silicon import load_silicon
from stages.backends.targets.load import load_catalogue, load_targets
from stages.backends.timing.accuracy import accuracy, accuracy_text
from stages.backends.timing.silicon import Chip
from stages.report.estimate import amount, short
from stages.report.estimate import line as estimate_line
from stages.support.system.installation import INSTALLATION as ROOT
from tests.pages.fit import STORE, measured
from tests.pages.tables import Row, counted, filled, number, replaced, rewritten

PAGE = ROOT / "docs/explanation/timing.md"
CHOSEN, PUBLISHED = "zoo's network, `target=nucleo-l4r5zi`", "network | published, Mcycles"
BOARDS, OTHERS, NETWORKS = "board | clock", "chip | tool", ("kws", "vww", "ic", "ad")
MODELS, PROGRAMS = "model | of", "program | rows"
TIMES = "board | kws"
BOARD, CORE = "nucleo-l4r5zi", "cortex-m4"
Report = Mapping[str, Any]


def run(recipe: str, target: str, *, by_cycles: bool = False) -> Report:
    options = {"set": "stages.tensorize.optimize_for=cycles"} if by_cycles else {}
    return counted(recipe, {"target": target, **options})


def both(report: Report) -> tuple[int, int]:
    """Instructions, and estimated cycles."""
    return report["instructions"]["total"], report["estimated_cycles"]["total"]


def chosen(row: Row) -> Row:
    """A network by instructions and by cycles, and what the latter wins."""
    usual, quick = (both(run(row[0].strip("`"), BOARD, by_cycles=by)) for by in (False, True))
    won = 100 * (quick[1] / usual[1] - 1)
    return row[0], *(f"{one:,}" for one in (*usual, *quick)), f"{won:.1f} %" if quick != usual else "0"


def each(report: Report) -> float:
    """Estimated cycles of an instruction."""
    instructions, cycles = both(report)
    return cycles / instructions


def published(row: Row) -> Row:
    """Cycles of an instruction: published, and estimated with wait states and without."""
    quotient = number(row[1]) / number(row[2])
    ours, without = (each(run(f"{row[0]}_cortex_m4", target)) for target in (BOARD, CORE))
    error = 100 * (ours / quotient - 1)
    return *row[:3], f"{quotient:.2f}", f"{ours:.3f}", f"{error:+.0f} %", f"{without:.3f}"


def boards() -> Iterator[Row]:
    """Boards with a timing model: clock, memory of the code, current, and the model's error on silicon."""
    for name, target in load_targets().items():
        model, board = target.timing_model, target.board
        if model is not None and board is not None and target.flash is not None:
            clock = f"{board.clock / 1e6:g} MHz" if board.clock else ""
            power = board.power.description if board.power is not None else ""
            told = f"`{model.name}`, {accuracy_text(accuracy(model.name))}"
            yield f"`{name}`", clock, target.flash.description, power, told


def models() -> Iterator[Row]:
    """Timing models: name, core, and source of the figures."""
    for name, model in load_catalogue().timings.items():
        yield f"`{name}`", model.title, model.source


def listed(page: str) -> str:
    """The page with today's models, and numbers of rows in silicon.yaml."""
    silicon = load_silicon(ROOT)
    counts = Counter(row.code.partition("-0")[0] for row in silicon.measurements)  # embench-0.5 counts as Embench

    def programs(row: Row) -> Row:
        codes = [name.removesuffix(" code") for name in row[0].lower().split(", ")]
        return row[0], str(sum(counts[code] for code in codes)), *row[2:]

    cores = {silicon.core(row) for row in silicon.measurements}
    page = rewritten(filled(page, MODELS, models()), PROGRAMS, programs)
    return replaced(page, r"\d+ rows on \d+ cores", f"{counts.total()} rows on {len(cores)} cores")


def times() -> Iterator[Row]:
    """Boards, with ms of each network (Mcycles without a clock), and what the cycles are from with its error."""
    for fits in zip(*(measured(network)[1] for network in ZOO.values()), strict=True):
        timed = next((fit for fit in fits if fit.timing), fits[0])
        model = f"`{timed.timing}`" if timed.timing else "no timing model"
        told = f"{model}, {accuracy_text(timed.accuracy)}" if timed.timing else model
        clock = f", {timed.clock_hz / 1e6:g} MHz" if timed.clock_hz else ""
        yield f"`{timed.board}`{clock}", *map(time_of, fits), told


def time_of(fit: Fit) -> str:
    """A board's ms of one network, or why there are none."""
    if fit.verdict != FITS:
        return fit.verdict
    if fit.least_ms is None:
        return f"{short(fit.estimated_cycles / 1e6)} Mcycles" if fit.estimated_cycles else "not estimated"
    times = {"ms": fit.estimated_ms, "least_ms": fit.least_ms, "most_ms": fit.most_ms}
    return amount(times, "ms") + ("" if fit.arena_limit is None else " (less RAM)")


def others() -> Iterator[Row]:
    """MLPerf Tiny's networks on chips whose core has a timing model: published ms of each tool, then our estimate."""
    silicon, catalogue = load_silicon(ROOT), load_catalogue()
    tools: dict[str, dict[str, dict[str, str]]] = {}
    for row in silicon.measurements:
        core = catalogue.cores.get(silicon.chips[row.chip].core or "")
        if row.run in NETWORKS and row.has_time and core is not None and core.timing and core.family == "cortex_m":
            clock = row.clock or silicon.chips[row.chip].clock
            times = tools.setdefault(row.chip, {}).setdefault(row.version, {})
            times[row.run] = short(1000 * silicon.cycles(row) / clock)
    for name, versions in tools.items():
        chip = silicon.chips[name]
        told = f"{chip.title}, {chip.core}, {chip.clock / 1e6:g} MHz"
        for version, times in versions.items():
            yield told, version, *(times.get(network, "") for network in NETWORKS)
            told = ""
        yield "", "**Firmline, estimated**", *predicted(name, chip)


def predicted(name: str, chip: Chip) -> Iterator[str]:
    """Estimated ms of each network on a chip; where the chip is no board, as a board with its core and its flash."""
    core = load_catalogue().cores[chip.core or ""]
    assert core.memory is not None
    board: dict[str, Any] = {"core": chip.core, "title": chip.title, "clock": chip.clock, "source": chip.source}
    board["memory"] = core.memory.model_dump(mode="json")
    board |= {"flash": chip.flash.model_dump(mode="json")} if chip.flash is not None else {}
    with TemporaryDirectory() as folder:
        declared = {} if chip.board else {"boards": {name: board}}
        (Path(folder) / "pipeline.yaml").write_text(json.dumps({"schema": 1, **declared}))
        project = Project(Path(folder), ROOT)
        for network in NETWORKS:
            overrides = {"target": chip.board or name}
            report = run_recipe(f"{network}_cortex_m4", overrides, root=project, store=STORE).report
            assert report is not None
            yield amount(report["estimated_cycles"], "milliseconds")


def printed(page: str) -> str:
    """The page with the lines that a run prints."""
    report = run("kws_cortex_m4", BOARD)
    instructions, _ = both(report)
    page = replaced(page, r"^instructions  [\d,]+, ", f"instructions  {instructions:,}, ")
    line = f"est. cycles   {estimate_line(report['estimated_cycles']).partition(' depending')[0]}"
    page = replaced(page, r"^est\. cycles   [\d,]+ \(timing model .* to [\d,]+(?= depending)", line)
    return replaced(page, r"(?<=of data cached; ).+$", accuracy_text(accuracy(CORE)))


def renewed(page: str) -> str:
    """The page with the figures of today."""
    page = rewritten(listed(printed(page)), CHOSEN, chosen)
    page = rewritten(page, PUBLISHED, published)
    page = filled(filled(page, BOARDS, boards()), OTHERS, others())
    return filled(page, TIMES, times())
