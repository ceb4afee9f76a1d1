"""One operator of a file for shape rules and checks: its tensors, options, constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.ir.model_info import ModelInfo, OperatorInfo, TensorInfo
from stages.ir.naming import named
from stages.support.lazy import np, npt

Shape = tuple[int, ...]
_INDEX_TYPES = ("int32", "int64")


class Refused(Exception):
    """An operator that Firmline does not support; the message completes "operator 3 (ADD) ..."."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


@dataclass(frozen=True)
class Table:
    """A table of options in the schema: its name, and its fields as `name:type` in order.

    Types are as in stages.ir.models.operator_options. `required`: LiteRT's defaults (zeros) for a missing table make
    no sense.
    """

    name: str
    fields: str
    required: bool = True

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(name, type) of each field, in order; the name of an unused one is ''."""
        pairs = (entry.partition(":") for entry in self.fields.split())
        return tuple((name, kind) for name, _, kind in pairs)

    @property
    def defaults(self) -> dict[str, Any]:
        """Values that LiteRT assumes without the table: zeros, for strides too."""
        zeros = {"bool": False, "float": 0.0, "ints": ()}
        return {name: zeros.get(kind, 0) for name, kind in self.kinds if name}


@dataclass(frozen=True)
class Operation:
    """An operator with its tensors in place of their indices.

    inputs         absent ones are None; those at the end are dropped
    intermediates  as in OperatorInfo
    """

    operator: OperatorInfo
    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...]
    intermediates: tuple[TensorInfo, ...] = ()

    @classmethod
    def of(cls, operator: OperatorInfo, info: ModelInfo) -> Operation:
        """Look up the tensors of an operator."""
        indices_of_inputs = list(operator.inputs)
        while indices_of_inputs and indices_of_inputs[-1] < 0:
            indices_of_inputs.pop()
        inputs = tuple(info.tensors[index] if index >= 0 else None for index in indices_of_inputs)
        outputs, intermediates = (
            tuple(info.tensors[index] for index in indices) for indices in (operator.outputs, operator.intermediates)
        )
        return cls(operator, inputs, outputs, intermediates)

    @property
    def op(self) -> str:
        """Name in the schema."""
        return self.operator.op

    def options(self, table: Table | None) -> Mapping[str, Any]:
        """Fields of the options, LiteRT's defaults if the file has none, {} for no table."""
        options = self.operator.options
        if table is None:
            return {}
        return options.fields if options is not None and options.table == table.name else table.defaults

    @property
    def flexbuffer(self) -> Any:
        """Options of a custom operator that are a flexbuffer, decoded. Raises Refused."""
        return flexbuffer(self.operator.custom)

    def input(self, position: int) -> TensorInfo:
        """Input that must be present. Raises Refused."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise Refused(f"lacks its input {position}")
        return tensor

    def constant(self, position: int, label: str) -> npt.NDArray[Any]:
        """Integers of a constant input: a shape, an axis or the like. Raises Refused."""
        tensor = self.input(position)
        if tensor.data is None:
            raise Refused(f"takes {label} from {named(tensor)}, a computed tensor; it must be a constant")
        if tensor.dtype not in _INDEX_TYPES:
            raise Refused(f"takes {label} from {named(tensor)}, which is {tensor.dtype} and not int32 or int64")
        return tensor.values().astype(np.int64)

    def integers(self, position: int, label: str, count: int | None = None) -> list[int]:
        """As `constant`, as a list. Raises Refused unless it has `count` entries.

        A single entry may have any number of axes.
        """
        array = self.constant(position, label)
        if array.ndim > 1 and not count == array.size == 1:
            raise Refused(f"has {label} of shape {listed(array.shape)}, which is not a list")
        values = [int(value) for value in array.reshape(-1)]
        if count is not None and len(values) != count:
            raise Refused(f"has {label} {listed(values)}: {len(values)} numbers, but {count} are needed")
        return values


def flexbuffer(data: bytes) -> Any:
    """Decode a flexbuffer. Raises Refused for other bytes."""
    from flatbuffers import flexbuffers

    try:
        return flexbuffers.Loads(data)
    except Exception as error:  # Loads does not validate, so any exception may occur
        raise Refused(f"has custom options of {len(data)} bytes that are not a flexbuffer") from error


def listed(values: Any) -> str:
    """Show values as [1, 2, 3], shortened beyond 12."""
    shown = [str(value) for value in values]
    return f"[{', '.join(shown if len(shown) <= 12 else [*shown[:10], '…'])}]"
