"""Judges in a process of its own: on some inputs LiteRT's reference kernels end the process with a failed check.

Known is a SOFTMAX over 512 or more nearly equal values, which it divides by 2^32 and more. The child reads its job as
JSON from stdin and writes one JSON object per line: {inference} for each it begins, then {result} or {error, hint}.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.base import StageError

_ROOT = Path(__file__).resolve().parents[2]
_HINT = "Its kernels cannot compute these inputs; a SOFTMAX over 512 or more nearly equal values is one cause."


def judge_in_child(
    model: Path, emitted: Path, simulated: Path, tolerance: float, progress: Callable[..., None]
) -> dict[str, Any]:
    """What stages.verify.judge.judge returns. StageError as from there.

    An inference on which LiteRT ends the child has no reference: the rest is judged without it, and the result names
    it. StageError when none is left.
    """
    names = json.loads((simulated / "inputs.json").read_text())["names"]
    job = {"model": str(model), "emitted": str(emitted), "simulated": str(simulated), "tolerance": tolerance}
    without: list[int] = []
    while True:
        last = _run_child({**job, "without": without}, lambda at: progress(f"LiteRT on {names[at]}", at / len(names)))
        if "result" in last:
            found: dict[str, Any] = last["result"]
            return found
        if "error" in last:
            raise StageError(last["error"], hint=last["hint"])
        if "inference" not in last:  # before the first: it is the model that LiteRT cannot bear
            raise StageError(f"LiteRT ended with {last['signal']}", hint=_HINT)
        without.append(last["inference"])
        if len(without) == len(names):
            raise StageError(f"LiteRT ended with {last['signal']} on every input, so there is no reference", hint=_HINT)


def _run_child(job: dict[str, Any], progress: Callable[[int], None]) -> dict[str, Any]:
    """The child's last words: {result}, {error, hint}, or {signal, inference} when a signal ended it."""
    last: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as complaints:
        command = [sys.executable, "-m", "stages.verify.child"]
        with subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True
        ) as child:
            assert child.stdin is not None and child.stdout is not None
            json.dump(job, child.stdin)
            child.stdin.close()
            for line in child.stdout:
                last = json.loads(line)
                if "inference" in last:
                    progress(last["inference"])
        if child.returncode < 0:
            return {**last, "signal": signal.Signals(-child.returncode).name}
        if child.returncode or not last.keys() & {"result", "error"}:
            complaints.seek(0)
            raise RuntimeError(f"the verifying process failed ({child.returncode})\n{complaints.read()}")
        return last


def _main() -> int:
    from stages.reference.interpreter import Reference
    from stages.verify.judge import judge
    from stages.verify.records import Records

    def say(**message: Any) -> None:
        print(json.dumps(message), flush=True)

    job = json.load(sys.stdin)
    try:
        records = Records.read(Path(job["emitted"]), Path(job["simulated"]))
        reference = Reference(Path(job["model"]).read_bytes(), name=records.name)
        say(
            result=judge(
                reference, records, job["tolerance"], lambda index: say(inference=index), without=job["without"]
            )
        )
    except StageError as error:
        say(error=error.message, hint=error.hint)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
