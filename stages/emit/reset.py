"""Content of model_reset()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.emit.weights import rows

if TYPE_CHECKING:
    from stages.emit.model import Model


def reset_of(model: Model, name: str) -> dict[str, Any]:
    """Return how a state tensor is reset: to a single byte `value`, or to the bytes in `rows`."""
    tensor = model.graph.tensors[name]
    data = model.graph.initial_state(name).tobytes()
    is_uniform = len({*data}) < 2
    return {
        "place": model.state_at(name),
        "value": int.from_bytes(data[:1], "little", signed=True) if is_uniform else 0,
        "bytes": tensor.bytes,
        "rows": [] if is_uniform else rows(data),
    }
