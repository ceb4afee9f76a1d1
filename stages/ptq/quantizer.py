"""Quantize a float file with given tensor ranges, through ai-edge-quantizer.

The library identifies tensors by name, but names need not be unique: it gets a file with numbers as names.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.base import StageError
from stages.import_model.normalize.graph import one_graph
from stages.ir.model_info import ModelInfo, TensorInfo
from stages.ir.models.tflite_reader import read
from stages.ir.reference.probe import check_loads, crashing_operator
from stages.ptq.extra_operators import FAILING, alike_ranges, to_integers
from stages.ptq.observe import Range
from stages.ptq.precision import Precision, Precisions
from stages.support.messages import escape

_NAMES = re.compile(r"t(\d+)(\D.*)?")
_REQUEST = Path(__file__).with_name("quantizer_process.py")


@dataclass(frozen=True)
class Quantized:
    """An integer TFLite file; `tensors` maps tensor numbers of the float file to its own."""

    data: bytes
    info: ModelInfo
    tensors: Mapping[int, int]

    def tensor(self, index: int) -> TensorInfo | None:
        """Return the tensor of this file for a tensor of the float file, else None."""
        return self.info.tensors[self.tensors[index]] if index in self.tensors else None


def quantize(
    data: bytes, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions, per_channel: bool
) -> Quantized:
    """Quantize the operators of a float file; those whose `wanted` is None stay float.

    `ranges`: of all input and computed tensors. Operators without integer support in the library and in
    stages.ptq.extra_operators stay float too. Raises StageError when the library fails.
    """
    ranges = alike_ranges(info, ranges)
    graph = one_graph(data, "the float network", 0)
    for index, tensor in enumerate(graph.tensors):
        tensor.name = f"t{index}".encode()
    # The library misreads files of old converters: constants in the list of inputs are inputs for it, and operator
    # codes in the deprecated field are ADD.
    graph.inputs = list(info.inputs)
    for code in graph.codes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    numbered = graph.pack(signatureDefs=[])  # without a list, the library fails if an output changes its type
    header = json.dumps(request(len(numbered), info, ranges, wanted, per_channel)).encode() + b"\n"
    process = subprocess.run([sys.executable, str(_REQUEST)], input=header + numbered, capture_output=True, check=False)
    if process.returncode:
        reason = process.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
        raise StageError(f"ai-edge-quantizer cannot quantize the network: {escape.name(reason, 300)}")
    graph_out = one_graph(process.stdout, "the quantized network", 0)
    to_integers(graph_out, info, ranges, wanted)
    places: dict[int, int] = {}
    for index, tensor in enumerate(graph_out.tensors):
        match = _NAMES.fullmatch(tensor.name.decode())
        if match is None:
            continue
        number = int(match[1])
        tensor.name = (info.tensors[number].name + (match[2] or "")).encode()
        if not match[2]:
            places[number] = index
    packed = graph_out.pack()
    return Quantized(packed, read(packed, "the quantized network"), places)


def request(
    size: int, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions, per_channel: bool
) -> dict[str, Any]:
    """Return the request to stages.ptq.quantizer_process.

    It has a rule for all operators, then one rule per exception.
    """
    precisions = [precision for precision in wanted.values() if precision is not None]
    default = max(dict.fromkeys(precisions), key=precisions.count) if precisions else Precision(8, 8)
    rules: list[dict[str, Any]] = [{"scope": ".*", "activations": default.activations, "weights": 8}]
    for operator in info.operators:
        precision = None if operator.op in FAILING else wanted[operator.index]
        if precision != Precision(default.activations, 8):
            scope = ";".join(f"t{index}" for index in operator.outputs)
            activations, weights = (None, None) if precision is None else (precision.activations, precision.weights)
            rules.append({"scope": f"^{scope};?$", "activations": activations, "weights": weights})
    range_entries = {
        f"t{index}": [len(info.tensors[index].shape), bounds.low, bounds.high] for index, bounds in ranges.items()
    }
    return {"bytes": size, "per_channel": per_channel, "rules": rules, "ranges": range_entries}


def check_runs(quantized: Quantized) -> None:
    """Raise StageError if LiteRT refuses the file or crashes on it.

    The library can write invalid graphs.
    """
    check_loads(quantized.data, quantized.info, "the quantized network")
    inputs = [np.zeros(quantized.info.tensors[index].shape, _type(quantized, index)) for index in quantized.info.inputs]
    operator = crashing_operator(quantized.data, quantized.info, inputs)
    if operator is not None:
        where = f"{operator.op} {escape.quoted(quantized.info.tensors[operator.outputs[0]].name)}"
        raise StageError(
            f"LiteRT crashes on the quantized network, in {where}", hint="exclude the layer with keep_float"
        )


def _type(quantized: Quantized, index: int) -> str:
    return quantized.info.tensors[index].dtype
