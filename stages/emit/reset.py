"""What model_reset() does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.emit.weights import rows

if TYPE_CHECKING:
    from stages.emit.model import Model


def reset_of(model: Model, name: str) -> dict[str, Any]:
    """How a tensor of state is set to its beginning: to one `value`, or to the bytes in `rows`."""
    tensor = model.graph.tensors[name]
    data = model.graph.beginning(name).tobytes()
    one = len({*data}) < 2
    return {
        "place": model.state_at(name),
        "value": int.from_bytes(data[:1], "little", signed=True) if one else 0,
        "bytes": tensor.bytes,
        "rows": [] if one else rows(data),
    }
