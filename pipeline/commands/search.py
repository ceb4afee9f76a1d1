"""`doit search NAME`: tries mixed precisions of a float network, and shows which are better than all others.

Each candidate is the recipe with other options of quantize, run on the simulator and verified, on one inference: RAM,
ROM and instructions are those of its firmware, and one that differs from the reference is never the best. Of each kind
of exception as many layers are tried as lose most in int8: 1, 2, 4, …; what was made stays in the store, so a second
search only looks it up.
"""

from __future__ import annotations

import glob
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.api import RunResult, run_recipe
from pipeline.commands.command import JSON, Command, the_recipe, variables
from pipeline.commands.exit_codes import PENDING
from pipeline.commands.reported import reported
from pipeline.documents.overrides import RECIPE_VARIABLES, check_assignments
from pipeline.errors import PipelineError, StageFailed
from pipeline.keys.package_groups import install_group
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, current_project, project_of
from pipeline.recipes.loader import load_recipe
from pipeline.runs.session import Display
from pipeline.terminal.progress import ProgressDisplay
from pipeline.terminal.table import Table, render
from stages.messages import escape

COLUMNS = ("candidate", "loss", "SNR dB", "instructions", "RAM", "ROM", "verdict")
_LEAST_DROP = 0.1  # dB: a layer that loses less is no layer to make an exception of
_USUAL = 12


class Search(Command):
    """`doit search NAME`."""

    name = "search"
    names = "recipe"
    variables = RECIPE_VARIABLES
    doc_purpose = "try mixed precisions of a float network within a budget"
    doc_usage = "NAME [target=… model=… set=…] [--json]"
    doc_description = (
        "The recipe has quantize: {mode: calibrate, data: …, search: {max_loss: 1.0, ram: 64K, instructions: 1000000}}."
        " Prints loss, signal to noise, instructions, RAM and ROM of all that was tried, and options for the best."
    )
    cmd_options = (JSON,)

    def execute(self, opt_values: dict[str, Any], pos_args: list[str]) -> int:
        """Search, and print the table. Returns the exit code, 3 when nothing is within the budget."""
        return reported(lambda: _run(variables(), pos_args, as_json=opt_values["json"]))


@dataclass(frozen=True)
class Candidate:
    """Options of quantize beside the recipe's own."""

    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What a candidate comes to: loss in percentage points, noise of the outputs in dB, RAM and ROM in bytes.

    `error` is why there is no firmware of it, or what verify said; '' where nothing is wrong.
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
        """All that should be small."""
        return (self.loss, -self.snr, self.instructions, self.ram, self.rom)


@dataclass(frozen=True)
class Budget:
    """What a network may come to; None where it does not matter."""

    loss: float | None = None
    ram: int | None = None
    instructions: int | None = None

    def exceeded(self, one: Measured) -> str:
        """What of it is exceeded, in words; '' when nothing is."""
        pairs: tuple[tuple[str, float, float | None], ...] = (
            ("loss", one.loss, self.loss),
            ("RAM", one.ram, self.ram),
            ("instructions", one.instructions, self.instructions),
        )
        return ", ".join(name for name, value, most in pairs if most is not None and value > most)


def candidates(layers: Sequence[Mapping[str, Any]], options: Mapping[str, Any], most: int) -> list[Candidate]:
    """What to try, the recipe as it is first: `layers` as its ptq.json has them, `options` as it has of quantize."""
    found = [Candidate("as the recipe says", {})]
    if options["weights"] != "int4":
        found.append(Candidate("int4 weights", {"weights": "int4"}))
    found += _exceptions(layers, options)
    return found[:most]


def _exceptions(layers: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Iterator[Candidate]:
    losing = [one for one in layers if one["drop"] >= _LEAST_DROP and one["dtype"] == "int8"]
    losing.sort(key=lambda one: -one["drop"])
    count = 1
    while losing:
        chosen = [{"name": glob.escape(one["name"])} for one in losing[:count]]
        what = f"{count} layer{'s' if count > 1 else ''}"
        wide = {"keep_int16": [*options["keep_int16"], *chosen]}
        yield Candidate(f"{what} with int16", wide)
        if options["weights"] != "int4":
            yield Candidate(f"{what} with int16, int4 weights", {**wide, "weights": "int4"})
        yield Candidate(f"{what} in float", {"keep_float": [*options["keep_float"], *chosen]})
        if count == len(losing):
            return
        count = min(2 * count, len(losing))


def front(found: Sequence[Measured]) -> list[Measured]:
    """Those to which no other is as good in everything and better in something; of equal ones the first."""
    sound = [one for one in found if not one.error]
    return [
        one
        for place, one in enumerate(sound)
        if not any(
            all(a <= b for a, b in zip(other.figures, one.figures, strict=True))
            and (other.figures != one.figures or number < place)
            for number, other in enumerate(sound)
            if other is not one
        )
    ]


def best(found: Sequence[Measured], budget: Budget) -> Measured | None:
    """Of those within the budget the one with the least loss, then of fewest instructions; None where none is."""
    within = [one for one in found if not one.error and not budget.exceeded(one)]
    return min(within, key=lambda one: (one.loss, one.instructions, -one.snr), default=None)


def search(
    recipe: str,
    overrides: Mapping[str, str] | None = None,
    *,
    root: Project | None = None,
    display: Display | None = None,
    **places: Any,
) -> tuple[list[Measured], Budget]:
    """Measures the candidates of a recipe. `places` are `store`, `build` and `install` of run_recipe.

    Raises PipelineError.
    """
    project = current_project() if root is None else project_of(root)
    loaded = load_recipe(recipe, root=project, registry=registry_of(project), variables=overrides)
    config: Any = loaded.recipe.config("quantize")
    if config is None or getattr(config, "mode", "") != "calibrate":
        hint = "quantize: {mode: calibrate, data: …} makes integers of a float network"
        raise PipelineError(f"recipe '{loaded.title}' quantizes nothing: there is nothing to search", hint=hint)
    if loaded.target.counter == "none":
        raise PipelineError(f"target {loaded.target.name} counts no instructions, so there is nothing to compare")
    options = config.model_dump(mode="json", exclude_none=True, exclude={"kind"})
    wanted = options.get("search", {})
    last = "verify" if "verify" in loaded.chain.names else "simulate"  # a recipe may leave it out
    budget = Budget(wanted.get("max_loss", options.get("max_loss")), wanted.get("ram"), wanted.get("instructions"))

    def measure(candidate: Candidate) -> tuple[Measured, RunResult | None]:
        try:
            changed = _recipe(recipe, loaded.title, candidate)
            result = run_recipe(changed, overrides, until=last, root=project, display=display, **places)
        except StageFailed as error:
            return Measured(candidate, error=str(error).splitlines()[0]), None
        return _measured(candidate, result), result

    first, made = measure(Candidate("as the recipe says", {}))
    if made is None:
        raise PipelineError(f"the recipe itself cannot be run: {first.error}")
    layers = json.loads((made.artifacts["ptq"] / "ptq.json").read_text())["layers"]
    others = candidates(layers, options, wanted.get("most", _USUAL))[1:]
    return [first, *(measure(candidate)[0] for candidate in others)], budget


def _recipe(name: str, title: str, candidate: Candidate) -> dict[str, Any]:
    """The recipe with a candidate's options, without bounds, on one inference."""
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


def _measured(candidate: Candidate, result: RunResult) -> Measured:
    read = {name: json.loads((result.artifacts[kind] / name).read_text()) for kind, name in _FILES}
    found, sizes, counts = read["ptq.json"], read["sizes.json"], read["counts.json"]
    ram = sizes["data"] + sizes["bss"] + (counts["stack_bytes"] or 0)
    total = counts["inferences"][0]["total"]
    return Measured(candidate, found["loss"], found["snr"], total, ram, sizes["rom_bytes"])


_FILES = (("ptq", "ptq.json"), ("compile", "sizes.json"), ("simulate", "counts.json"))


def table(found: Sequence[Measured], budget: Budget) -> Table:
    """All that was tried."""
    ahead, chosen = front(found), best(found, budget)
    rows, good = [], []
    for one in found:
        if one.error:
            rows.append((one.candidate.name, "", "", "", "", "", one.error))
            good.append(False)
            continue
        beyond = budget.exceeded(one)
        told = "best" if one is chosen else "on the front" if one in ahead else ""
        verdict = "; ".join(filter(None, (told, f"beyond the budget: {beyond}" if beyond else "")))
        figures = (f"{one.loss:.2f}", f"{one.snr:.1f}", f"{one.instructions:,}", f"{one.ram:,}", f"{one.rom:,}")
        rows.append((one.candidate.name, *figures, verdict))
        good.append(not beyond)
    return Table(COLUMNS, tuple(rows), tuple(good))


def _run(given: dict[str, str], named: Sequence[str], *, as_json: bool) -> int:
    check_assignments(given.items(), RECIPE_VARIABLES)
    name = the_recipe("search", given, named)
    with closing(ProgressDisplay(sys.stderr if as_json else None)) as display:
        found, budget = search(name, given, display=display, install=install_group)
        if not as_json:
            shown = table(found, budget)
            display.show(lambda width: render(shown, f"mixed precisions of {name}"))
    chosen = best(found, budget)
    if as_json:
        print(json.dumps({"recipe": name, "budget": asdict(budget), "tried": _records(found, budget)}, indent=1))
    elif chosen is None:
        print("nothing is within the budget")
    else:
        options = json.dumps(dict(chosen.candidate.options), ensure_ascii=False)
        print(f"best: {escape.line(options) if chosen.candidate.options else 'the recipe as it is'}")
    return PENDING if chosen is None else 0


def _records(found: Sequence[Measured], budget: Budget) -> list[dict[str, Any]]:
    """As JSON has them: figures, and whether each is the best, on the front, and what of the budget it exceeds."""
    ahead, chosen = front(found), best(found, budget)
    return [
        {
            **asdict(one),
            "best": one is chosen,
            "front": any(one is other for other in ahead),
            "beyond": "" if one.error else budget.exceeded(one),
        }
        for one in found
    ]
