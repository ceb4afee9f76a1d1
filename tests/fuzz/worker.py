"""A process that runs one mutant after the other: TVM is imported once.

Reads jobs {kind, seed, index} as lines of JSON from its standard input and answers each with a line {verdict, message,
faults}. Whoever started it ends it when a mutant takes too much time or memory.
"""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tests.fuzz.outcome import Outcome
from tests.fuzz.run_model import Bench, as_json, captured, run_model, run_onnx


@cache
def _runner(kind: str, folder: Path) -> Callable[[int, int], Outcome]:
    from tests.fuzz.run_recipe import run_recipe

    return partial({"models": run_model, "onnx": run_onnx, "recipes": run_recipe}[kind], _bench(folder))


@cache
def _bench(folder: Path) -> Bench:
    bench = Bench(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(bench.temporary)
    return bench


def main() -> None:
    """Until standard input ends. The only argument is a folder of its own."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    jobs, answers = sys.stdin, os.fdopen(os.dup(1), "w", buffering=1)
    os.environ["FIRMLINE_CACHE"] = str(folder / "cache")
    for line in jobs:
        job = json.loads(line)
        noise = folder / "noise.txt"
        with captured(noise):
            try:
                outcome = _runner(job["kind"], folder)(job["seed"], job["index"])
            except Exception:
                outcome = Outcome("raised", traceback.format_exc(), ("traceback",))
            sys.stdout.flush()
            sys.stderr.flush()
        said = noise.read_text(errors="replace").strip()
        if said:
            outcome = Outcome(
                outcome.verdict, f"{outcome.message}\n[output] {said[:2000]}", (*outcome.faults, "stray output")
            )
        answers.write(as_json(outcome) + "\n")


if __name__ == "__main__":
    main()
