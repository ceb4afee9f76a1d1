"""One operator of the file as the checks see it: its tensors, its options, its constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.ir.models.naming import named

if TYPE_CHECKING:
    import numpy.typing as npt

    from stages.ir.models.tflite_reader import ModelInfo, OperatorInfo, TensorInfo
    from stages.ir.operators.declaration import Table

Shape = tuple[int, ...]
_INDEX_TYPES = ("int32", "int64")


class Refused(Exception):
    """What is wrong with an operator, to complete "operator 3 (ADD) ..."."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


@dataclass(frozen=True)
class Operation:
    """An operator with its tensors instead of their numbers.

    inputs         without the absent ones (-1) at the end, which are as good as not there; None for others absent
    intermediates  as of OperatorInfo
    """

    operator: OperatorInfo
    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...]
    intermediates: tuple[TensorInfo, ...] = ()

    @classmethod
    def of(cls, operator: OperatorInfo, info: ModelInfo) -> Operation:
        indices = list(operator.inputs)
        while indices and indices[-1] < 0:
            indices.pop()
        inputs = tuple(info.tensors[index] if index >= 0 else None for index in indices)
        outputs, between = (
            tuple(info.tensors[index] for index in some) for some in (operator.outputs, operator.intermediates)
        )
        return cls(operator, inputs, outputs, between)

    @property
    def op(self) -> str:
        return self.operator.op

    def options(self, table: Table | None) -> Mapping[str, Any]:
        """The fields of the options; those that LiteRT takes where the file has none. Empty for no table."""
        found = self.operator.options
        if table is None:
            return {}
        return found.fields if found is not None and found.table == table.name else table.defaults

    @property
    def flexbuffer(self) -> Any:
        """The options of a custom operator that are a flexbuffer, mostly a dictionary. Refused for other bytes."""
        return flexbuffer(self.operator.custom)

    def input(self, position: int) -> TensorInfo:
        """An input that must be there."""
        found = self.inputs[position] if position < len(self.inputs) else None
        if found is None:
            raise Refused(f"lacks its input {position}")
        return found

    def constant(self, position: int, what: str) -> npt.NDArray[Any]:
        """The integers of an input that says a shape, an axis or the like; Refused when it is computed."""
        import numpy as np

        tensor = self.input(position)
        if tensor.data is None:
            raise Refused(f"takes {what} from {named(tensor)}, a computed tensor; it must be a constant")
        if tensor.dtype not in _INDEX_TYPES:
            raise Refused(f"takes {what} from {named(tensor)}, which is {tensor.dtype} and not int32 or int64")
        return tensor.values().astype(np.int64)

    def integers(self, position: int, what: str, count: int | None = None) -> list[int]:
        """As `constant`, as a list; Refused unless it has `count` entries. A single one may have any number of axes."""
        array = self.constant(position, what)
        if array.ndim > 1 and not count == array.size == 1:
            raise Refused(f"has {what} of shape {listed(array.shape)}, which is no list")
        values = [int(value) for value in array.reshape(-1)]
        if count is not None and len(values) != count:
            raise Refused(f"has {what} {listed(values)}: {len(values)} numbers where {count} are needed")
        return values


def flexbuffer(data: bytes) -> Any:
    """What a flexbuffer says. Refused for bytes that are none."""
    from flatbuffers import flexbuffers

    try:
        return flexbuffers.Loads(data)
    except Exception as error:  # it trusts the bytes, and raises anything
        raise Refused(f"has custom options of {len(data)} bytes that are no flexbuffer") from error


def listed(values: Any) -> str:
    """[1, 2, 3], cut where it becomes long."""
    shown = [str(value) for value in values]
    return f"[{', '.join(shown if len(shown) <= 12 else [*shown[:10], '…'])}]"
