"""Run the checker in a child process: LiteRT's reference kernels abort on some inputs.

A known case is a SOFTMAX over 512 or more nearly equal values. LiteRT prints no reason. If it aborts on all inputs,
the operator is found by running models with the first operators only.

The child reads its job as JSON from stdin. It writes one JSON object per line: {inference} when it begins one, then
{result} or {error, hint}.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.ir.graph import Graph
from stages.ir.models.tflite_reader import read
from stages.ir.naming import tensor_names
from stages.ir.operators.plugins import module_by_name
from stages.ir.operators.table import declare, plugin_modules, plugin_operators
from stages.ir.reference.onnx_runtime import OnnxReference, imported_reference, onnx_networks
from stages.ir.reference.probe import crashing_operator
from stages.support.messages.operator_error import operator_label
from stages.support.system.installation import with_modules
from stages.verify.graph_reference import GraphReference
from stages.verify.records import Records

if TYPE_CHECKING:
    from stages.verify.checker import LiteRT
    from stages.verify.formulas import Formulas

GRAPH_REFERENCE = "reference"
"""Folder of the emit artifact with the integer graph; exists if an accelerator's own arithmetic is the reference."""

_SOFTMAX = "LiteRT's reference SOFTMAX aborts on 512 or more nearly equal values."


def check_in_child(
    model: Path, graph: Path, emitted: Path, simulated: Path, tolerance: float, progress: Callable[..., None]
) -> dict[str, Any]:
    """Run stages.verify.checker.check in a child process and return its result.

    `graph`: the artifact of quantize.

    Inferences on which LiteRT aborts are skipped and named in the result.
    Raises StageError as the checker does, and if LiteRT aborts on all inferences.
    """
    names = json.loads((simulated / "inputs.json").read_text())["names"]
    job = {"model": str(model), "emitted": str(emitted), "simulated": str(simulated), "tolerance": tolerance}
    job["graph"] = str(graph)
    operators = [
        (operator.shown, operator.module, str(operator.place), operator.package) for operator in plugin_modules()
    ]
    without: list[int] = []
    while True:
        message = _run_child(
            {**job, "without": without, "operators": operators},
            lambda index: progress(f"LiteRT on {names[index]}", index / len(names)),
        )
        if "result" in message:
            result: dict[str, Any] = message["result"]
            return result
        if "error" in message:
            raise StageError(message["error"], hint=message["hint"])
        if "inference" not in message:  # LiteRT aborted while it loaded the model
            raise _aborted(message["signal"], "while it loaded the model", model, emitted, simulated, None)
        without.append(message["inference"])
        if len(without) == len(names):
            condition = "on every input"
            raise _aborted(message["signal"], condition, model, emitted, simulated, without[0])


def _aborted(
    signal_name: str, condition: str, model: Path, emitted: Path, simulated: Path, inference: int | None
) -> StageError:
    """Return the error for an abort of LiteRT, with the operator.

    `inference` None: while the model was loaded.
    """
    data = model.read_bytes()
    info, inputs = read(data), None
    if inference is not None:
        inputs = Records.read(emitted, simulated).inputs_of(inference)
    operator = crashing_operator(data, info, inputs)
    if operator is None:
        return StageError(f"LiteRT aborted with {signal_name} {condition}")
    return StageError(
        f"LiteRT aborted with {signal_name} {condition}\n"
        f"in {operator_label(operator.index, operator.op)} {tensor_names(operator, info)}",
        hint=_SOFTMAX if operator.op == "SOFTMAX" and inference is not None else "",
    )


def _run_child(job: dict[str, Any], progress: Callable[[int], None]) -> dict[str, Any]:
    """Return the child's last message: {result} or {error, hint}.

    {signal, inference} if a signal ended the child.
    """
    message: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors:
        # -P: do not import a folder `stages` of the project.
        command = [sys.executable, "-P", "-m", "stages.verify.child"]
        with subprocess.Popen(
            command,
            env=with_modules(dict(os.environ)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as child:
            assert child.stdin is not None and child.stdout is not None
            json.dump(job, child.stdin)
            child.stdin.close()
            for line in child.stdout:
                message = json.loads(line)
                if "inference" in message:
                    progress(message["inference"])
        if child.returncode < 0:
            return {**message, "signal": signal.Signals(-child.returncode).name}
        if child.returncode or not message.keys() & {"result", "error"}:
            errors.seek(0)
            raise RuntimeError(f"the checker's process failed ({child.returncode})\n{errors.read()}")
        return message


def _formulas(graph: Path, litert: LiteRT, tolerance: float) -> Formulas | None:
    """Return the check of plug-in layers; None if the network has none."""
    from stages.verify.formulas import Formulas

    if isinstance(litert, OnnxReference) or not plugin_modules():
        return None
    integer_graph = Graph.load(graph)
    has_plug_ins = any(layer.op.op in plugin_operators().layers for layer in integer_graph.layers)
    return Formulas(integer_graph, litert, tolerance) if has_plug_ins else None


def check_job(job: dict[str, Any], send: Callable[..., None]) -> None:
    """Check a job of `_run_child`.

    `send` gets {inference} when one begins, then {result} or {error, hint}.
    """
    from stages.verify.checker import check
    from stages.verify.onnx import check_onnx
    from stages.verify.whole_window import whole_window

    declare([module_by_name(*operator) for operator in job["operators"]])
    try:
        records = Records.read(Path(job["emitted"]), Path(job["simulated"]))
        model = Path(job["model"])
        of_onnx, load = bool(onnx_networks(model)), partial(imported_reference, model, records.name)
        folder = Path(job["emitted"]) / GRAPH_REFERENCE
        has_graph = folder.is_dir()

        def begins(index: int) -> None:
            send(inference=index)

        window = None if has_graph else whole_window(model.parent, job["tolerance"])
        if of_onnx and not has_graph:
            places = model.parent, Path(job["graph"])
            result = check_onnx(load, *places, records, job["tolerance"], begins, job["without"], window)
        else:
            litert = load()
            result = check(
                GraphReference(folder) if has_graph else litert,
                records,
                job["tolerance"],
                begins,
                without=job["without"],
                litert=litert if has_graph else None,
                formulas=None if of_onnx else _formulas(Path(job["graph"]), litert, job["tolerance"]),
                window=window,
            )
        send(result=result)
    except StageError as error:
        send(error=error.message, hint=error.hint)


if __name__ == "__main__":
    check_job(json.load(sys.stdin), lambda **message: print(json.dumps(message), flush=True))
