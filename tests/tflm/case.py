"""Cases of an operator as facts: tensors with values, options, and what came out of somebody else's kernel.

A file of `cases/` is one operator:

    operator: GATHER
    source: gather_test.cc
    cases:
      - name: Shuffle
        options: {GatherOptions: {axis: 0, batchDims: 0}}
        inputs:
          - {type: int8, shape: [2, 2], scale: 0.5, zero_point: 1, values: [1, 2, 3, 4]}
          - {type: int32, shape: [2], constant: true, values: [1, 0]}
        outputs:
          - {type: int8, shape: [2, 2], scale: 0.5, zero_point: 1, values: [3, 4, 1, 2]}

options     the schema's table of options and its fields; left out where the operator has none
inputs      in the operator's order, null for an absent one; `constant` in the file, `variable` kept between inferences
intermediates of the case: tensors that nobody computes, for their scales
version     of the operator, 1 where it is not there
scale       also `scales`, `zero_points` and `axis` for one each along an axis
values      flat, in logical order; with `steps: 3` of the case, of what is neither constant nor variable a list for
            each of three inferences, one after the other
tolerance   of the case: how far each value may be from the expected ones, 0 where it is not there; float32 has one of
            1e-5, relative, in any case
differs     of the case: why LiteRT does not give the expected values; Firmline must then give LiteRT's
refused     of the case: part of the sentence with which Firmline refuses it, as long as it does
impossible  of the case: why there is no such model; it is not run then
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from stages.ir.models.tflite_writer import Tensor, TFLiteWriter

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Port:
    """A tensor of a case; `values` has one array for each step, of a constant or variable one array in all."""

    type: str
    shape: tuple[int, ...]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    constant: bool
    variable: bool
    values: tuple[np.ndarray, ...]

    def at(self, step: int) -> np.ndarray:
        """What goes in, or is expected, in this inference: the last value stays."""
        return self.values[min(step, len(self.values) - 1)]


@dataclass(frozen=True)
class Case:
    operator: str
    name: str
    inputs: tuple[Port | None, ...]
    outputs: tuple[Port, ...]
    table: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    steps: int = 1
    tolerance: float = 0.0
    differs: str = ""
    refused: str = ""
    impossible: str = ""
    intermediates: tuple[Port, ...] = ()

    @property
    def data(self) -> tuple[Port, ...]:
        """The inputs of the model."""
        return tuple(port for port in self.inputs if port is not None and not port.constant and not port.variable)


def files() -> list[str]:
    """The operators that have cases, as the files are called."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> tuple[Case, ...]:
    """The cases of a file."""
    document = yaml.load((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    return tuple(_case(document["operator"], entry) for entry in document["cases"])


def _case(operator: str, entry: dict[str, Any]) -> Case:
    given = dict(entry)
    steps = given.pop("steps", 1)
    ((table, options),) = given.pop("options", {"": {}}).items()
    inputs = tuple(port and _port(port, steps) for port in given.pop("inputs"))
    outputs = tuple(_port(port, steps) for port in given.pop("outputs"))
    between = tuple(_port(port, steps) for port in given.pop("intermediates", ()))
    return Case(
        operator,
        inputs=inputs,
        outputs=outputs,
        table=table,
        options=options,
        steps=steps,
        intermediates=between,
        **given,
    )


def _port(entry: dict[str, Any], steps: int) -> Port:
    given = dict(entry)
    dtype, shape, values = given.pop("type"), tuple(given.pop("shape")), given.pop("values", None)
    constant, variable = given.pop("constant", False), given.pop("variable", False)
    scales = tuple(given.pop("scales", [given.pop("scale")] if "scale" in given else []))
    points = tuple(given.pop("zero_points", [given.pop("zero_point", 0)] * len(scales)))
    axis = given.pop("axis", 0)
    if given:
        raise ValueError(f"unknown: {', '.join(given)}")
    several = steps > 1 and not constant and not variable
    held = [] if values is None else values if several else [values]
    kind = "int8" if dtype in ("int4", "int2") else dtype
    arrays = tuple(np.array(part, kind).reshape(shape) for part in held)
    return Port(dtype, shape, scales, points, axis, constant, variable, arrays)


def model(cases: Sequence[Case]) -> bytes:
    """A TFLite file of all the cases, side by side; tensors have the name of their case."""
    writer = TFLiteWriter()
    for case in cases:
        inputs = [port and _tensor(writer, case, port) for port in case.inputs]
        outputs = [_declared(writer, case, port) for port in case.outputs]
        between = [_declared(writer, case, port) for port in case.intermediates]
        fields = _fields(case)
        writer.operator(case.operator, inputs, outputs, case.table, fields, version=case.version, intermediates=between)
        writer.output(*outputs)
    return writer.build()


def _tensor(writer: TFLiteWriter, case: Case, port: Port) -> Tensor:
    if port.constant:
        scale, points = port.scales or None, list(port.zero_points) or 0
        return writer.constant(case.name, port.values[0], scale, points, axis=port.axis, dtype=port.type)
    if port.variable:
        return writer.variable(case.name, port.shape, port.type, *(port.scales[:1] or (None,)), *port.zero_points[:1])
    return writer.input(case.name, port.shape, port.type, *(port.scales[:1] + port.zero_points[:1]))


def _declared(writer: TFLiteWriter, case: Case, port: Port) -> Tensor:
    scale, points = port.scales or None, list(port.zero_points) or 0
    return writer.tensor(case.name, port.shape, port.type, scale, points, axis=port.axis)


def _fields(case: Case) -> dict[str, Any]:
    """Lists of integers as the writer takes them."""
    return {
        name: np.array(value, np.int32) if isinstance(value, list) else value for name, value in case.options.items()
    }
