"""From a float file and the ranges of its tensors to an integer one, through ai-edge-quantizer.

The library knows tensors by their names, which need not be unique in a file: it is given a file with numbers for names.
"""

from __future__ import annotations

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
from stages.ir.models.tflite_reader import ModelInfo, TensorInfo, read
from stages.ir.reference.probe import check_loads, crashing_operator
from stages.ptq.observe import Range
from stages.ptq.precision import Precision, Precisions
from stages.ptq.remaining import FAILING, alike_ranges, to_integers
from stages.support.messages import escape

_NAMES = re.compile(r"t(\d+)(\D.*)?")
_REQUEST = Path(__file__).with_name("child.py")


@dataclass(frozen=True)
class Quantized:
    """An integer TFLite file; `tensors` has the number in it of each of the float file's tensors that is there."""

    data: bytes
    info: ModelInfo
    tensors: Mapping[int, int]

    def tensor(self, index: int) -> TensorInfo | None:
        """What a tensor of the float file is in this one."""
        return self.info.tensors[self.tensors[index]] if index in self.tensors else None


def quantize(
    data: bytes, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions, per_channel: bool
) -> Quantized:
    """Quantizes the operators of a float file; those of which `wanted` is None stay float.

    `ranges`: of all tensors that are fed or computed. Operators that neither the library nor stages.ptq.remaining has
    integers for stay float too. Raises StageError when the library fails.
    """
    ranges = alike_ranges(info, ranges)
    graph = one_graph(data, "the float network", 0)
    for index, tensor in enumerate(graph.tensors):
        tensor.name = f"t{index}".encode()
    # What old converters leave makes the library write graphs that are none: constants that they list among the inputs
    # it takes for inputs, operators with a code in the old field alone for ADD.
    graph.inputs = list(info.inputs)
    for code in graph.codes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    numbered = graph.pack(signatureDefs=[])  # the library fails without a list where an output changes its type
    header = json.dumps(request(len(numbered), info, ranges, wanted, per_channel)).encode() + b"\n"
    child = subprocess.run([sys.executable, str(_REQUEST)], input=header + numbered, capture_output=True, check=False)
    if child.returncode:
        said = child.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2]
        raise StageError(f"ai-edge-quantizer cannot quantize the network: {escape.name(said, 300)}")
    made = one_graph(child.stdout, "the quantized network", 0)
    to_integers(made, info, ranges, wanted)
    places: dict[int, int] = {}
    for index, tensor in enumerate(made.tensors):
        match = _NAMES.fullmatch(tensor.name.decode())
        if match is None:
            continue
        number = int(match[1])
        tensor.name = (info.tensors[number].name + (match[2] or "")).encode()
        if not match[2]:
            places[number] = index
    packed = made.pack()
    return Quantized(packed, read(packed, "the quantized network"), places)


def request(
    size: int, info: ModelInfo, ranges: Mapping[int, Range], wanted: Precisions, per_channel: bool
) -> dict[str, Any]:
    """What stages.ptq.child reads: a rule for all, then one for each operator that is to be otherwise."""
    given = [one for one in wanted.values() if one is not None]
    usual = max(dict.fromkeys(given), key=given.count) if given else Precision(8, 8)
    rules: list[dict[str, Any]] = [{"scope": ".*", "activations": usual.activations, "weights": 8}]
    for operator in info.operators:
        one = None if operator.op in FAILING else wanted[operator.index]
        if one != Precision(usual.activations, 8):
            scope = ";".join(f"t{index}" for index in operator.outputs)
            activations, weights = (None, None) if one is None else (one.activations, one.weights)
            rules.append({"scope": f"^{scope};?$", "activations": activations, "weights": weights})
    seen = {f"t{index}": [len(info.tensors[index].shape), one.low, one.high] for index, one in ranges.items()}
    return {"bytes": size, "per_channel": per_channel, "rules": rules, "ranges": seen}


def check_runs(quantized: Quantized) -> None:
    """Raises StageError when LiteRT refuses the file, or ends on it: the library makes graphs that are none."""
    check_loads(quantized.data, quantized.info, "the quantized network")
    inputs = [np.zeros(quantized.info.tensors[index].shape, _type(quantized, index)) for index in quantized.info.inputs]
    fatal = crashing_operator(quantized.data, quantized.info, inputs)
    if fatal is not None:
        where = f"{fatal.op} {escape.quoted(quantized.info.tensors[fatal.outputs[0]].name)}"
        raise StageError(f"LiteRT ends on the quantized network, in {where}", hint="keep_float can except the layer")


def _type(quantized: Quantized, index: int) -> str:
    return quantized.info.tensors[index].dtype
