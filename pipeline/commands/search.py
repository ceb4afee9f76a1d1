"""`doit search NAME`: try mixed precisions of a float model and show the best ones.

Each candidate is the recipe with other options of quantize. It runs on the simulator with one inference and is
verified; RAM, ROM and instructions are those of its firmware. A candidate that differs from the reference is never the
best. Exceptions are tried for the 1, 2, 4, … layers that lose most in int8. Artifacts stay in the store, so a second
search runs nothing.
"""

import glob
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.api import RunResult, run_recipe
from pipeline.commands.command import JSON, Command, single_recipe, variables
from pipeline.commands.exit_codes import PENDING
from pipeline.documents.overrides import RECIPE_VARIABLES, check_assignments, each_target
from pipeline.errors import PipelineError, StageFailed
from pipeline.keys.package_groups import install_group
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, current_project, project_of
from pipeline.recipes.loader import load_recipe
from pipeline.runs.session import Display
from pipeline.terminal.progress import ProgressDisplay
from pipeline.terminal.table import Table
from stages.support.messages import escape

COLUMNS = ("candidate", "loss", "SNR dB", "instructions", "RAM", "ROM", "verdict")
_LEAST_DROP = 0.1  # dB: layers that lose less stay in int8
_USUAL = 12


class Search(Command):
    """`doit search NAME`."""

    name = "search"
    group = "compare"
    examples = (("float/kws_mixed", "try mixed precisions of a recipe"),)
    names = "recipe"
    variables = RECIPE_VARIABLES
    doc_purpose = "try mixed precisions of a float model within a budget"
    doc_usage = "NAME [target=… model=… set=…] [--json]"
    doc_description = (
        "The recipe needs quantize: {mode: calibrate, data: …, search: {max_loss: 1.0, ram: 64K, instructions: "
        "1000000}}. Prints loss, signal-to-noise ratio, instructions, RAM and ROM of each candidate, and the options "
        "of the best one."
    )
    cmd_options = (JSON,)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        values, as_json = variables(), options["json"]
        check_assignments(values.items(), RECIPE_VARIABLES)
        name = single_recipe(self.name, values, named)
        of_targets = each_target(values)
        results = [_search(name, of_target, as_json=as_json, alone=len(of_targets) == 1) for of_target in of_targets]
        records = [record for record, _ in results]
        if as_json:
            print(json.dumps(records if len(records) > 1 else records[0], indent=1))
        return max(code for _, code in results)


@dataclass(frozen=True)
class Candidate:
    """Options of quantize, added to those of the recipe."""

    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Measurement:
    """Figures of a candidate: loss in percentage points, SNR in dB, RAM and ROM in bytes.

    `error` is why it has no firmware, or verify's message; '' if there is no error.
    """

    candidate: Candidate
    loss: float = 0.0
    snr: float = 0.0
    instructions: int = 0
    ram: int = 0
    rom: int = 0
    error: str = ""

    @property
    def figures(self) -> tuple[float, ...]:
        """Figures for which smaller is better."""
        return (self.loss, -self.snr, self.instructions, self.ram, self.rom)


@dataclass(frozen=True)
class Budget:
    """Limits; None for no limit."""

    loss: float | None = None
    ram: int | None = None
    instructions: int | None = None

    def exceeded(self, measurement: Measurement) -> str:
        """Return the names of the exceeded limits, '' if there are none."""
        pairs: tuple[tuple[str, float, float | None], ...] = (
            ("loss", measurement.loss, self.loss),
            ("RAM", measurement.ram, self.ram),
            ("instructions", measurement.instructions, self.instructions),
        )
        return ", ".join(name for name, value, most in pairs if most is not None and value > most)


def candidates(layers: Sequence[Mapping[str, Any]], options: Mapping[str, Any], most: int) -> list[Candidate]:
    """Return the candidates, the unchanged recipe first.

    `layers` are those of its ptq.json, `options` those of quantize, `most` the maximum number.
    """
    result = [Candidate("unchanged recipe", {})]
    if options["weights"] != "int4":
        result.append(Candidate("int4 weights", {"weights": "int4"}))
    result += _exceptions(layers, options)
    return result[:most]


def _exceptions(layers: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Iterator[Candidate]:
    """Yield candidates that keep the 1, 2, 4, … most lossy layers in int16 or float."""
    losing = [layer for layer in layers if layer["drop"] >= _LEAST_DROP and layer["dtype"] == "int8"]
    losing.sort(key=lambda layer: -layer["drop"])
    count = 1
    while losing:
        rules = [{"name": glob.escape(layer["name"])} for layer in losing[:count]]
        title = f"{count} layer{'s' if count > 1 else ''}"
        int16 = {"keep_int16": [*options["keep_int16"], *rules]}
        yield Candidate(f"{title} with int16", int16)
        if options["weights"] != "int4":
            yield Candidate(f"{title} with int16, int4 weights", {**int16, "weights": "int4"})
        yield Candidate(f"{title} in float", {"keep_float": [*options["keep_float"], *rules]})
        if count == len(losing):
            return
        count = min(2 * count, len(losing))


def pareto_front(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements that no other one beats: as good in all figures, better in one.

    If several are equal, the first.
    """
    valid = [item for item in measurements if not item.error]
    return [
        item
        for index, item in enumerate(valid)
        if not any(
            all(a <= b for a, b in zip(other.figures, item.figures, strict=True))
            and (other.figures != item.figures or number < index)
            for number, other in enumerate(valid)
            if other is not item
        )
    ]


def best(measurements: Sequence[Measurement], budget: Budget) -> Measurement | None:
    """Return the measurement within the budget with the least loss, None if there is none.

    If losses are equal, the one with the fewest instructions.
    """
    within = [item for item in measurements if not item.error and not budget.exceeded(item)]
    return min(within, key=lambda item: (item.loss, item.instructions, -item.snr), default=None)


def search(
    recipe: str,
    overrides: Mapping[str, str] | None = None,
    *,
    root: Project | None = None,
    display: Display | None = None,
    **places: Any,
) -> tuple[list[Measurement], Budget]:
    """Measure the candidates of a recipe. Raises PipelineError.

    `places` are `store`, `build` and `install` of run_recipe.
    """
    project = current_project() if root is None else project_of(root)
    loaded = load_recipe(recipe, root=project, registry=registry_of(project), variables=overrides)
    config: Any = loaded.recipe.config("quantize")
    if config is None or getattr(config, "mode", "") != "calibrate":
        hint = "set quantize: {mode: calibrate, data: …} to quantize a float model"
        raise PipelineError(f"recipe '{loaded.title}' does not quantize: nothing to search", hint=hint)
    if loaded.target.counter == "none":
        raise PipelineError(f"target {loaded.target.name} does not count instructions: nothing to compare")
    options = config.model_dump(mode="json", exclude_none=True, exclude={"kind"})
    limits = options.get("search", {})
    last = "verify" if "verify" in loaded.sequence.names else "simulate"  # a recipe may omit verify
    budget = Budget(limits.get("max_loss", options.get("max_loss")), limits.get("ram"), limits.get("instructions"))

    def measure(candidate: Candidate) -> tuple[Measurement, RunResult | None]:
        try:
            changed = _recipe(recipe, loaded.title, candidate)
            result = run_recipe(changed, overrides, until=last, root=project, display=display, record=False, **places)
        except StageFailed as error:
            return Measurement(candidate, error=str(error).splitlines()[0]), None
        return _measurement(candidate, result), result

    first, result = measure(Candidate("unchanged recipe", {}))
    if result is None:
        raise PipelineError(f"the unchanged recipe fails: {first.error}")
    layers = json.loads((result.artifacts["ptq"] / "ptq.json").read_text())["layers"]
    others = candidates(layers, options, limits.get("most", _USUAL))[1:]
    return [first, *(measure(candidate)[0] for candidate in others)], budget


def _recipe(name: str, title: str, candidate: Candidate) -> dict[str, Any]:
    """Return the recipe with a candidate's options, without limits, for one inference."""
    inputs = {"random": 1, "extremes": False, "files": [], "encoding": None, "labels": None}
    return {
        "schema": 1,
        "extends": name,
        "name": f"{title.partition(':')[0]}_search",
        "stages": {
            "quantize": {"max_loss": None, "min_snr": None, **candidate.options},
            "simulate": {"inputs": inputs, "trace": True},
        },
    }


def _measurement(candidate: Candidate, result: RunResult) -> Measurement:
    """Read a candidate's figures from the artifacts."""
    read = {name: json.loads((result.artifacts[kind] / name).read_text()) for kind, name in _FILES}
    quantization, sizes, counts = read["ptq.json"], read["sizes.json"], read["counts.json"]
    ram = sizes["data"] + sizes["bss"] + (counts["stack_bytes"] or 0)
    total = counts["inferences"][0]["total"]
    return Measurement(candidate, quantization["loss"], quantization["snr"], total, ram, sizes["rom_bytes"])


_FILES = (("ptq", "ptq.json"), ("compile", "sizes.json"), ("simulate", "counts.json"))


def table(measurements: Sequence[Measurement], budget: Budget) -> Table:
    """Return the table of all measurements."""
    front_items, winner = pareto_front(measurements), best(measurements, budget)
    rows, good = [], []
    for item in measurements:
        if item.error:
            rows.append((item.candidate.name, "", "", "", "", "", item.error))
            good.append(False)
            continue
        exceeded = budget.exceeded(item)
        rank = "best" if item is winner else "on the front" if item in front_items else ""
        verdict = "; ".join(filter(None, (rank, f"beyond the budget: {exceeded}" if exceeded else "")))
        figures = (f"{item.loss:.2f}", f"{item.snr:.1f}", f"{item.instructions:,}", f"{item.ram:,}", f"{item.rom:,}")
        rows.append((item.candidate.name, *figures, verdict))
        good.append(not exceeded)
    return Table(COLUMNS, tuple(rows), tuple(good))


def _search(name: str, values: dict[str, str], *, as_json: bool, alone: bool) -> tuple[dict[str, Any], int]:
    """Search on one target and print the table. Returns the JSON record and the exit code."""
    target = values.get("target") or values.get("board", "")
    place = {} if alone else {"target": target}
    with closing(ProgressDisplay(sys.stderr if as_json else None)) as display:
        measurements, budget = search(name, values, display=display, install=install_group)
        if not as_json:
            result_table = table(measurements, budget)
            title = f"mixed precisions of {name}" + (f" on {target}" if place else "")
            display.show_table(result_table, title)
    winner = best(measurements, budget)
    if as_json:
        pass
    elif winner is None:
        print("no candidate is within the budget")
    else:
        options = json.dumps(dict(winner.candidate.options), ensure_ascii=False)
        print(f"best: {escape.line(options) if winner.candidate.options else 'the unchanged recipe'}")
    record = {"recipe": name, **place, "budget": asdict(budget), "tried": _records(measurements, budget)}
    return record, PENDING if winner is None else 0


def _records(measurements: Sequence[Measurement], budget: Budget) -> list[dict[str, Any]]:
    """Return the JSON records: figures, `best`, `front`, and the exceeded limits as `beyond`."""
    front_items, winner = pareto_front(measurements), best(measurements, budget)
    return [
        {
            **asdict(item),
            "best": item is winner,
            "front": any(item is other for other in front_items),
            "beyond": "" if item.error else budget.exceeded(item),
        }
        for item in measurements
    ]
