"""A process that runs one mutant after the other: TVM is imported once.

Reads jobs {kind, seed, index} as lines of JSON from its standard input and answers each with a line {verdict, message,
faults}. Whoever started it ends it when a mutant takes too much time or memory.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from tests.fuzz.outcome import Outcome
from tests.fuzz.run_model import Bench, as_json, run_model, run_onnx
from tests.fuzz.run_recipe import run_recipe

_RUN = {"models": run_model, "onnx": run_onnx, "recipes": run_recipe}


def main() -> None:
    """Until standard input ends. The only argument is a folder of its own."""
    folder = Path(sys.argv[1])
    bench = Bench(folder)
    os.environ["FIRMLINE_CACHE"] = str(folder / "cache")
    os.environ["TMPDIR"] = tempfile.tempdir = str(bench.temporary)
    jobs, answers = sys.stdin, os.fdopen(os.dup(1), "w", buffering=1)
    # What the process writes to its standard output and error, also from C++, is a fault.
    with (folder / "noise.txt").open("w+b", buffering=0) as noise:
        os.dup2(noise.fileno(), 1)
        os.dup2(noise.fileno(), 2)
        for line in jobs:
            job = json.loads(line)
            noise.seek(0)
            noise.truncate()
            try:
                outcome = _RUN[job["kind"]](bench, job["seed"], job["index"])
            except Exception:
                outcome = Outcome("raised", traceback.format_exc(), ("traceback",))
            sys.stdout.flush()
            sys.stderr.flush()
            noise.seek(0)
            if said := noise.read().decode(errors="replace").strip():
                message = f"{outcome.message}\n[output] {said[:2000]}"
                outcome = Outcome(outcome.verdict, message, (*outcome.faults, "stray output"))
            answers.write(as_json(outcome) + "\n")


if __name__ == "__main__":
    main()
