"""Runs a mutated model through the pipeline, in the worker's process."""

import io
import json
import os
import re
import shutil
import warnings
from pathlib import Path
from random import Random
from typing import Any

from pipeline.api import RunResult, run_recipe
from pipeline.artifacts.store import Store
from pipeline.errors import PipelineError
from stages.support.messages import escape
from tests.fuzz.mutate_model import model_mutant
from tests.fuzz.outcome import Outcome, has_control_characters, message_faults

TARGETS = ("host", "rv64-rvp", "rv32-scalar", "cortex-m4", "cortex-m55", "aarch64-dotprod")
_PLACE = re.compile(
    r"\b(the model|operator|operators|tensor|tensors|layer|layers|input|output|subgraph|signature)\b|"
    r"\.(?:tflite|onnx)\b"
)
_SHARE = 8  # one of so many mutants that get that far is built, run and compared


class Bench:
    """A folder in which one mutant after the other runs, with a store and a folder for temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.build, self.temporary = (folder / name for name in ("store", "build", "tmp"))
        self.temporary.mkdir(parents=True, exist_ok=True)

    def leftovers(self) -> tuple[str, ...]:
        """Faults in what a run left behind; everything is cleared for the next."""
        store, found = Store(self.store), []
        keys = [path.name for path in (self.store / "artifacts").glob("*/*")]
        if any(store.find(key) is None for key in keys) or any((self.store / "building").iterdir()):
            found.append("half artifact")
        # ONNX Runtime writes a number of its own there when it is imported.
        if any(path.name != ".ses" for path in self.temporary.iterdir()):
            found.append("temporary files left")
        for folder in (self.store / "artifacts", self.store / "building", self.build, self.temporary):
            _empty(folder)
        return tuple(found)

    def report_faults(self, result: RunResult) -> tuple[str, ...]:
        """Faults in what a run that went through shows: log.txt, report.md, the terminal."""
        texts = [path.read_text() for path in result.folder.glob("*") if path.suffix in (".txt", ".md")]
        if result.report is not None:
            texts.append(_on_terminal(result.report))
        return ("raw control characters",) if any(has_control_characters(text) for text in texts) else ()


def run_model(bench: Bench, seed: int, index: int) -> Outcome:
    """Mutant `index`: to tensorize for one of several targets, and a share of them to the end on the host."""
    return _run(bench, seed, index, model_mutant(seed, index).data, "tflite")


def run_onnx(bench: Bench, seed: int, index: int) -> Outcome:
    """As run_model, of an ONNX file."""
    from tests.fuzz.mutate_onnx import onnx_mutant

    return _run(bench, seed, index, onnx_mutant(seed, index).data, "onnx")


def _run(bench: Bench, seed: int, index: int, data: bytes, ending: str) -> Outcome:
    rng = Random(f"run {seed} {index}")
    target = rng.choice(TARGETS)
    whole = rng.randrange(_SHARE) == 0
    path = bench.folder / f"m{index}.{ending}"
    path.write_bytes(data)
    recipe = {
        "schema": 1,
        "name": "fuzzed",
        "target": "host" if whole else target,
        "model": {"file": str(path)},
        "stages": {"compile": {"optimize": "-O1"}, "simulate": {"inputs": {"random": 1}, "timeout": 60.0}},
    }
    try:
        return judged(bench, recipe, "" if whole else "tensorize", _PLACE)
    finally:
        path.unlink()


def judged(bench: Bench, recipe: Any, until: str, place: re.Pattern[str]) -> Outcome:
    """Runs a recipe and judges the end of it, what it said and what it left."""
    faults: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = run_recipe(recipe, until=until, store=bench.store, build=bench.build)
        except PipelineError as error:
            verdict, message = "refused", escape.message(str(error))
            faults = message_faults(message, place)
            if re.search(r"^verify: .* differ", message) or "outputs equal" in message:
                verdict, faults = "ran", ("wrong output",)
        else:
            verdict, message = f"ran to {until}" if until else "ran exact", ""
            if not until and (result.report is None or result.report["verify"]["mismatches"]):
                faults = ("wrong output",)
            faults += bench.report_faults(result)
    if warned:
        message += "".join(f"\n{w.category.__name__}: {w.message} ({Path(w.filename).name}:{w.lineno})" for w in warned)
        faults += ("Python warning",)
    return Outcome(verdict, message, (*faults, *bench.leftovers()))


def _on_terminal(report: dict[str, Any]) -> str:
    """What the run shows at its end, without the colours."""
    from rich.console import Console

    from pipeline.plugins.registry import default_registry

    out = io.StringIO()
    stage = next(stage for stage in default_registry() if stage.kind == "report")
    Console(file=out, width=120, color_system=None).print(stage.render(report, 120))
    return out.getvalue()


def _empty(folder: Path) -> None:
    if not folder.is_dir():
        return
    for parent, _, _ in os.walk(folder):
        Path(parent).chmod(0o700)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def as_json(outcome: Outcome) -> str:
    """One line."""
    return json.dumps({"verdict": outcome.verdict, "message": outcome.message, "faults": outcome.faults})
