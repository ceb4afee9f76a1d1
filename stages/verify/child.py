"""Judges in a process of its own: on some inputs LiteRT's reference kernels end the process with a failed check.

Known is a SOFTMAX over 512 or more nearly equal values, which it divides by 2^32 and more. LiteRT says nothing when it
ends; so where nothing else is left to judge, the operator is found with models of the first operators only. The child
reads its job as JSON from stdin and writes one JSON object per line: {inference} for each it begins, then {result} or
{error, hint}.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.ir.operators.outside import by_name
from stages.ir.operators.table import declare, declaring
from stages.support.system.installation import with_modules

if TYPE_CHECKING:
    from stages.verify.checker import LiteRT
    from stages.verify.formulas import Formulas

OWN_REFERENCE = "reference"
"""Folder of the emit artifact: the integer graph, where an engine's arithmetic is its meaning."""

_SOFTMAX = "The reference SOFTMAX cannot sum the exponentials of 512 or more nearly equal values."


def check_in_child(
    model: Path, graph: Path, emitted: Path, simulated: Path, tolerance: float, progress: Callable[..., None]
) -> dict[str, Any]:
    """What stages.verify.checker.check returns. StageError as from there. `graph`: the artifact of quantize.

    An inference on which LiteRT ends the child has no reference: the rest is judged without it, and the result names
    it. StageError when none is left.
    """
    names = json.loads((simulated / "inputs.json").read_text())["names"]
    job = {"model": str(model), "emitted": str(emitted), "simulated": str(simulated), "tolerance": tolerance}
    job["graph"] = str(graph)
    operators = [(one.shown, one.module, str(one.place), one.package) for one in declaring()]
    without: list[int] = []
    while True:
        last = _run_child(
            {**job, "without": without, "operators": operators},
            lambda at: progress(f"LiteRT on {names[at]}", at / len(names)),
        )
        if "result" in last:
            found: dict[str, Any] = last["result"]
            return found
        if "error" in last:
            raise StageError(last["error"], hint=last["hint"])
        if "inference" not in last:  # before the first: it is the model that LiteRT cannot bear
            raise _ended(last["signal"], "while it loaded the model", model, emitted, simulated, None)
        without.append(last["inference"])
        if len(without) == len(names):
            when = "on every input, so there is no reference"
            raise _ended(last["signal"], when, model, emitted, simulated, without[0])


def _ended(
    signal_name: str, when: str, model: Path, emitted: Path, simulated: Path, inference: int | None
) -> StageError:
    """The error for a LiteRT that ended, with the operator in which it does (`inference` None: while it is loaded)."""
    from stages.ir.models.naming import sides
    from stages.ir.models.tflite_reader import read
    from stages.ir.reference.probe import crashing_operator
    from stages.support.messages.operator_error import called
    from stages.verify.records import Records

    data = model.read_bytes()
    info, inputs = read(data), None
    if inference is not None:
        inputs = Records.read(emitted, simulated).given(inference)
    operator = crashing_operator(data, info, inputs)
    if operator is None:
        return StageError(f"LiteRT ended with {signal_name} {when}")
    return StageError(
        f"LiteRT ended with {signal_name} {when}\n"
        f"it ends in {called(operator.index, operator.op)} {sides(operator, info)}",
        hint=_SOFTMAX if operator.op == "SOFTMAX" and inference is not None else "",
    )


def _run_child(job: dict[str, Any], progress: Callable[[int], None]) -> dict[str, Any]:
    """The child's last words: {result}, {error, hint}, or {signal, inference} when a signal ended it."""
    last: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as complaints:
        # -P: a folder `stages` of the project is not this one.
        command = [sys.executable, "-P", "-m", "stages.verify.child"]
        with subprocess.Popen(
            command,
            env=with_modules(dict(os.environ)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
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


def _formulas(graph: Path, litert: LiteRT, tolerance: float) -> Formulas | None:
    """Of a network with layers that plug-ins declare; None of others."""
    from stages.ir.graph import Graph
    from stages.ir.operators.table import outside
    from stages.ir.reference.onnx_runtime import OnnxReference
    from stages.verify.formulas import Formulas

    if isinstance(litert, OnnxReference) or not declaring():
        return None
    read = Graph.load(graph)
    theirs = any(layer.op.op in outside().layers for layer in read.layers)
    return Formulas(read, litert, tolerance) if theirs else None


def _main() -> int:
    from stages.ir.reference.onnx_runtime import OnnxReference, onnx_reference
    from stages.ir.reference.partitions import reference_of
    from stages.verify.checker import check
    from stages.verify.graph_reference import GraphReference
    from stages.verify.onnx import check_onnx
    from stages.verify.records import Records

    def say(**message: Any) -> None:
        print(json.dumps(message), flush=True)

    job = json.load(sys.stdin)
    declare([by_name(*one) for one in job["operators"]])
    try:
        records = Records.read(Path(job["emitted"]), Path(job["simulated"]))
        model = Path(job["model"])
        litert = onnx_reference(model.parent, records.name) or reference_of(model.read_bytes(), name=records.name)
        own = Path(job["emitted"]) / OWN_REFERENCE
        others = (GraphReference(own), litert) if own.is_dir() else (litert, None)
        given = {"without": job["without"], "litert": others[1]}

        def begins(index: int) -> None:
            say(inference=index)

        if isinstance(litert, OnnxReference) and others[1] is None:
            found = check_onnx(litert, model.parent, Path(job["graph"]), records, job["tolerance"], begins)
        else:
            formulas = _formulas(Path(job["graph"]), litert, job["tolerance"])
            found = check(others[0], records, job["tolerance"], begins, formulas=formulas, **given)
        say(result=found)
    except StageError as error:
        say(error=error.message, hint=error.hint)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
