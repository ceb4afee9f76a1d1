"""Runs an integer graph beside ONNX Runtime, layer by layer."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.import_model.onnx import convert
from stages.ir.graph import Graph
from stages.ir.models.index_ranges import index_ranges
from stages.ir.models.tflite_reader import read
from stages.ir.reference.onnx_runtime import OnnxReference
from stages.layout.apply import lay_out
from stages.quantize.lower import lower_module
from stages.verify.onnx_layers import OnnxLayers
from tests.support.integer import LAYOUTS


def graph_of(proto: Any, layout: str = "NHWC", *, twice: bool = False) -> tuple[Graph, OnnxReference, dict[str, Any]]:
    """The integer graph, ONNX Runtime, and what import says of the network."""
    data = proto.SerializeToString()
    converted = convert(data, "net.onnx", {}, "nchw")
    info = read(converted.data, "net.onnx")
    description = describe(info, operator_options(converted.data), converted.rules)
    module, _ = lay_out(build_module(converted.data, info), LAYOUTS[layout])
    reference = OnnxReference(converted.data, converted.original, converted.names)
    return lower_module(module, description, twice=twice).graph, reference, description


def compare_layers(proto: Any, folder: Path, layout: str = "NHWC", runs: int = 3, *, twice: bool = False) -> OnnxLayers:
    """After some runs on random numbers in which every layer was ONNX Runtime's. StageError where one was not."""
    graph, reference, description = graph_of(proto, layout, twice=twice)
    folder.mkdir(exist_ok=True)
    graph.save(folder)
    (folder / "tensors.json").write_text(json.dumps(description))
    layers = OnnxLayers(folder, folder / "tensors.json", reference)
    rules = {number: operator.get("rule") or {} for number, operator in enumerate(description["operators"])}
    ranges = index_ranges(reference.info, rules)
    for seed in range(runs):
        random = np.random.default_rng(seed)
        inputs = []
        for t in reference.inputs:
            low, high = ranges.get(t.index, (-128, 127))
            floats = random.uniform(-3, 3, t.shape).astype(np.float32)
            integers = random.integers(low, high + 1, t.shape).astype(t.dtype)
            inputs.append(floats if t.dtype == "float32" and t.index not in ranges else integers)
        layers.run(inputs)
    return layers
