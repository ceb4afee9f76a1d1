"""Content of model_reset()."""

from typing import Any

from stages.emit.model import Model
from stages.emit.weights import rows


def reset_of(model: Model, name: str) -> dict[str, Any]:
    """Return C that resets a state tensor: to bytes `value`, or `times` copies of `rows`.

    With `times` above 1, `place` is the address of copy number `row`.
    """
    data = model.graph.initial_state(name).tobytes()
    is_uniform = len({*data}) < 2
    period = len(data) if is_uniform else (data + data).find(data, 1)  # rows of a window are often equal
    times, place = len(data) // period, model.state_at(name)
    if times > 1:  # at(OFFSET)
        place = f"{place.removesuffix(')')} + (row * (size_t){period}))".replace("(", "((size_t)", 1)
    return {
        "place": place,
        "value": int.from_bytes(data[:1], "little", signed=True) if is_uniform else 0,
        "bytes": period,
        "times": times,
        "rows": [] if is_uniform else rows(data[:period]),
    }
