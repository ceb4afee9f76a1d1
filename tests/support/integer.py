"""From a TFLite file to the integer graph and its values, beside LiteRT's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stages.import_model.build import build_module
from stages.import_model.describe import describe, operator_options
from stages.ir.graph import Graph
from stages.ir.models.builder import ModelBuilder, Tensor
from stages.ir.models.tflite_reader import read
from stages.ir.reference.integer import run_graph
from stages.ir.reference.interpreter import Reference, random_inputs
from stages.layout.apply import lay_out
from stages.layout.rules import LayoutConfig, LayoutRule, Match
from stages.quantize.lower import lower_module

LAYOUTS = {
    "NHWC": LayoutConfig(),
    "planar depthwise": LayoutConfig(rules=(LayoutRule(match=Match(op="depthwise_conv2d"), data="NCHW"),)),
    "NCHW": LayoutConfig(default="NCHW"),
}


def integer_graph(data: bytes, layout: str = "NHWC") -> Graph:
    """The graph of a TFLite file, laid out as LAYOUTS[layout] says."""
    info = read(data, "model")
    module, _ = lay_out(build_module(data, info), LAYOUTS[layout])
    return lower_module(module, describe(info, operator_options(data))).graph


@dataclass
class Comparison:
    """graph; checked: how many tensors were compared; wrong: for each that differs, how many elements do."""

    graph: Graph
    checked: int = 0
    wrong: dict[str, str] = field(default_factory=dict)


def compare(
    data: bytes,
    inputs: Sequence[np.ndarray] | None = None,
    layout: str = "NHWC",
    seed: int = 0,
    change: Callable[[Graph], Graph] = lambda graph: graph,
) -> Comparison:
    """Runs the graph in numpy and the file in LiteRT, and compares every tensor that both have, inputs included.

    `change` is what a later stage does with the graph.
    """
    graph = change(integer_graph(data, layout))
    reference = Reference(data)
    given = random_inputs(reference.info, seed) if inputs is None else inputs
    reference.run(given)
    result = Comparison(graph)
    for name, ours in run_graph(graph, given).items():
        index, channels = graph.tensors[name].tflite_index, graph.tensors[name].channels
        if index is None:
            continue
        theirs = reference.tensor(index)
        if channels is not None:
            theirs = theirs[..., channels]
        result.checked += 1
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            result.wrong[name] = f"{ours.dtype}{ours.shape} is not {theirs.dtype}{theirs.shape}"
        elif not np.array_equal(ours, theirs):
            result.wrong[name] = f"{(ours != theirs).sum()} of {ours.size} elements"
    return result


def one_input(
    shape: tuple[int, ...],
    dtype: str,
    quant: tuple[float, int] | None,
    operator: Callable[[ModelBuilder, Tensor], Tensor | list[Tensor]],
) -> bytes:
    """A TFLite file: one input through `operator`."""
    builder = ModelBuilder()
    made = operator(builder, builder.input("x", shape, dtype, *(quant or ())))
    builder.output(*(made if isinstance(made, list) else [made]))
    return builder.build()
