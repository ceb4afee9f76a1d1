"""Cases of operators that a project's plug-ins declare: their one-operator models, of drawn shapes, scales and options.

A model goes through import, layout and quantize; its layers of the plug-in's classes are cases, tensors of four axes in
both layouts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from pydantic import ValidationError

from stages.backends.targets.load import load_targets
from stages.base import StageError
from stages.ir.graph import Graph, LayerView
from stages.ir.model_info import ModelInfo
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from stages.ir.operators.declaration import Operator
from stages.ir.operators.table import plugin_operators
from stages.support.messages.wording import several
from stages.support.system.scratch import temporary_folder
from tests.conformance.case import Case, Inputs, drawn_inputs, values
from tests.conformance.draw import Draw, with_layouts
from tests.support.stages_run import run_stages

MODELS = 12  # of each type of data
TRIES = 60  # of options that may contradict each other, for one model
TOLERANCE = 1e-4  # of float32, as that of verify
_TYPES = ("int8", "uint8", "int16", "float32")
_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (0, 0)}


def _axis(draw: Draw, shape: tuple[int, ...]) -> int:
    return draw.integer(-1, len(shape) - 1)


def _pair(most: int) -> Callable[[Draw, tuple[int, ...]], tuple[int, int]]:
    return lambda draw, shape: (draw.integer(1, most), draw.integer(1, most))


def _one_of(*choices: Any) -> Callable[[Draw, tuple[int, ...]], Any]:
    return lambda draw, shape: draw.choose(*choices)


# How an option of stages.ir.models.spec.OpModel is drawn; `shape` has the batch. Others keep what they are by default.
_OPTIONS: Mapping[str, Callable[[Draw, tuple[int, ...]], Any]] = {
    "activation": _one_of("none", "relu", "relu6"),
    "out_channels": lambda draw, shape: draw.integer(1, 9),
    "kernel": _pair(3),
    "stride": _pair(2),
    "dilation": _pair(2),
    "padding": _one_of("same", "valid"),
    "depth_multiplier": _one_of(1, 2),
    "bias": _one_of(True, False),
    "per_channel": _one_of(True, False),
    "rank": _one_of(1, 2),
    "memory": lambda draw, shape: draw.integer(1, 5),
    "other_shape": lambda draw, shape: shape,
    "constant": _one_of(False, True),
    "alpha": lambda draw, shape: draw.choose(draw.integer(-16, 16) / 8, float(draw.rng.uniform(-2, 2))),
    "beta": lambda draw, shape: draw.choose(draw.integer(1, 16) / 8, float(draw.rng.uniform(0.1, 2))),
    "axes": lambda draw, shape: (_axis(draw, shape),),
    "keep_dims": _one_of(False, True),
    "axis": _axis,
    "parts": lambda draw, shape: draw.integer(1, 4),
    "pads": lambda draw, shape: tuple((draw.integer(0, 2), draw.integer(0, 2)) for _ in shape),
    "new_shape": lambda draw, shape: (prod(shape),),
    "multiples": lambda draw, shape: tuple(draw.integer(1, 2) for _ in shape),
    "permutation": lambda draw, shape: tuple(int(axis) for axis in draw.rng.permutation(len(shape))),
    "begin": lambda draw, shape: (0,) * len(shape),
    "size": lambda draw, shape: tuple(draw.integer(1, extent) for extent in shape),
    "end": lambda draw, shape: shape,
    "align_corners": _one_of(False, True),
    "half_pixel_centers": _one_of(False, True),
}


@dataclass(frozen=True)
class Model:
    """A one-operator model: the recipe's words for it, its TFLite file, and its integer graph."""

    spec: OpModel
    tflite: bytes
    graph: Graph

    @property
    def name(self) -> str:
        return str(self.spec.model_dump(exclude_unset=True))


@dataclass(frozen=True)
class OutsideCases:
    """As a module of tests.conformance.operators, for kernels of any bits."""

    operator: Operator
    BITS: int = 0

    @property
    def OPS(self) -> frozenset[str]:
        return frozenset(name for layer in self.operator.legalization.layers for name in layer.names())

    def mandatory(self) -> Iterator[Case]:
        for model in models(self.operator.name):
            for view in self._layers(model.graph):
                draw = Draw(model.spec.seed)
                yield _case(f"{model.name} {_orders(view)}", ("shapes",), draw, view)

    def drawn(self, draw: Draw) -> LayerView:
        """Any of them."""
        model = drawn_model(self.operator, draw, draw.choose(*_types(self.operator)))
        return next(iter(self._layers(model.graph, draw)))

    def inputs(self, draw: Draw, view: LayerView) -> tuple[Inputs, ...]:
        return _inputs(draw, view)

    def _layers(self, graph: Graph, draw: Draw | None = None) -> Iterator[LayerView]:
        """The plug-in's layers, each in every order of its tensors; with `draw` in one."""
        for layer in graph.layers:
            if layer.op.op in self.OPS:
                orders = list(_layouts(graph.view(layer)))
                yield from orders if draw is None else [draw.choose(*orders)]


def _case(name: str, covers: tuple[str, ...], draw: Draw, view: LayerView) -> Case:
    return Case(name, covers, view, _inputs(draw, view), within(view))


def within(view: LayerView) -> float:
    """How far the layer's numbers may be from the formula's."""
    return TOLERANCE if view.outputs[0].dtype == "float32" else 0.0


def _inputs(draw: Draw, view: LayerView) -> tuple[Inputs, ...]:
    """Any values, of integers then every extreme: sums of the largest floats are no numbers."""
    if any(tensor.dtype == "float32" for tensor in view.inputs):
        return tuple(tuple(values(draw, tensor) for tensor in view.inputs) for _ in range(3))
    return drawn_inputs(draw, view)


def _layouts(view: LayerView) -> Iterator[LayerView]:
    images = [tensor.name for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]
    for layouts in product(("NHWC", "NCHW"), repeat=len(images)):
        yield with_layouts(view, **dict(zip(images, layouts, strict=True)))


def _orders(view: LayerView) -> str:
    return " ".join(str(tensor.layout) for tensor in (*view.inputs, *view.outputs) if tensor.layout)


def _types(operator: Operator) -> tuple[str, ...]:
    return tuple(dtype for dtype in _TYPES if dtype in operator.tensors.types)


@cache
def models(name: str) -> tuple[Model, ...]:
    """Models of an operator, by its name in the schema: MODELS of each type."""
    operator = plugin_operators().operators[name]
    return tuple(
        drawn_model(operator, Draw(MODELS * place + number), dtype)
        for place, dtype in enumerate(_types(operator))
        for number in range(MODELS)
    )


def drawn_model(operator: Operator, draw: Draw, dtype: str) -> Model:
    """A model that is accepted. AssertionError, with what was said last, where none is."""
    said = ""
    for _ in range(TRIES):
        try:
            spec = _spec(operator, draw, dtype)
            tflite = build(spec)
            return Model(spec, tflite, _graph(spec))
        except (ValidationError, StageError) as error:
            said = str(error)
    raise AssertionError(f"no drawn model of {operator.name} in {dtype} is accepted: {said}")


def _spec(operator: Operator, draw: Draw, dtype: str) -> OpModel:
    assert operator.model is not None
    shape = tuple(draw.choose(1, 2, 3, 5, 6, 9, 17) for _ in range(draw.integer(1, 3)))
    batch = draw.choose(1, 1, 2, 3)
    options: dict[str, Any] = {"op": operator.kind, "shape": shape, "batch": batch, "dtype": dtype}
    options["seed"] = draw.integer(0, 1 << 20)
    if dtype in _ZERO_POINTS:
        low, high = _ZERO_POINTS[dtype]
        zero_point = draw.choose(low, high, draw.integer(low, high), draw.integer(low, high))
        options["input"] = {"scale": 2.0 ** -draw.integer(1, 9) * draw.choose(1.0, 0.77), "zero_point": zero_point}
    for name in sorted(operator.model.options | set(operator.model.required)):
        if name in _OPTIONS and (name in operator.model.required or draw.integer(0, 3)):
            options[name] = _OPTIONS[name](draw, (batch, *shape))
    return OpModel.model_validate(options)


def _graph(spec: OpModel) -> Graph:
    with temporary_folder("conformance") as folder:
        made = run_stages(spec, load_targets()["host"], folder / "stages", until="quantize")
        return Graph.load(made["quantize"])


def can_be_drawn(operator: Operator) -> bool:
    """Whether it is a model of its own, of a type that recipes have."""
    return operator.model is not None and bool(_types(operator))


def not_drawn(operators: Mapping[str, Operator]) -> str:
    """A sentence on operators without cases, '' where there are none."""
    named = [name for name, operator in operators.items() if not can_be_drawn(operator)]
    return f"{several(named)}: no cases without `model` and a type among {', '.join(_TYPES)}" if named else ""


def _every_integer(info: ModelInfo) -> Iterator[list[np.ndarray]]:
    """All values of 8 bits, over as many inferences as it takes; none where an input has another type."""
    tensors = [info.tensors[index] for index in info.inputs]
    if any(tensor.dtype not in ("int8", "uint8") for tensor in tensors):
        return
    for start in range(0, 256, min(256, *(prod(tensor.shape) for tensor in tensors))):
        values = [np.arange(start, start + prod(tensor.shape)) % 256 for tensor in tensors]
        yield [
            one.astype(np.uint8).view(tensor.dtype).reshape(tensor.shape)
            for one, tensor in zip(values, tensors, strict=True)
        ]


def formula_is_reference(model: Model) -> str:
    """What differs between a model's layers, each by its `compute`, and its operator's `reference`; '' for nothing."""
    from stages.ir.reference.integer import run_graph
    from stages.ir.reference.interpreter import random_inputs
    from stages.ir.reference.partitions import reference_of

    reference = reference_of(model.tflite)
    given = [random_inputs(reference.info, seed) for seed in range(3)]
    for inputs in (*given, *_every_integer(reference.info)):
        expected = reference.run(inputs)
        reference.reset()
        found = run_graph(model.graph, inputs)
        for name, wanted in zip(model.graph.outputs, expected, strict=True):
            near = TOLERANCE if wanted.dtype == np.float32 else 0.0
            differing = int(np.sum(~np.isclose(found[name], wanted, rtol=near, atol=near, equal_nan=True)))
            if differing:
                return f"{model.name}: {differing} of {wanted.size} values are not the reference's"
    return ""
