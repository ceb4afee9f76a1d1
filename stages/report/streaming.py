"""Layers that run by rows: their savings and costs, and each streamed group."""

from collections.abc import Mapping
from typing import Any

from stages.support.messages.escape import markdown_row, shortened

_COLUMNS = ("layers", "rows per call", "bytes", "as whole images", "ends because")


def streaming(plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `streaming` of report.json from plan.json.

    None without groups, unless the recipe sets `streaming`.
    """
    effect = plan.get("streaming")
    if not effect:
        return None
    return {**effect, "unit": plan.get("unit", "instructions"), "groups": list(map(_group, plan.get("groups", ())))}


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "first": group["first"],
        "last": group["end"] - 1,
        "rows": {str(layer["index"]): layer["rows"] for layer in group["layers"]},
        "overlaps": group.get("distance") is not None,
        **{key: group.get(key) for key in ("bytes", "whole_bytes", "extra", "ends")},
    }


def rows_by_layer(plan: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """Return the rows of a call and of the image, by the index of each layer that runs by rows.

    The image is the layer's output, or the input of a layer that adds up rows.
    """
    layers = (layer for group in plan.get("groups", ()) for layer in group["layers"])
    return {layer["index"]: {"call": layer["rows"], "image": layer["height"]} for layer in layers}


def effect_line(effect: Mapping[str, Any]) -> str:
    """Return `layers 0 to 3 by rows: tensors 40 B instead of 55 (-26 %), estimated +0.4 % …`."""
    if effect["reason"]:
        return f"no layer runs by rows: {effect['reason']}"
    return f"{_layers(effect['groups'])} by rows: tensors {_saving(effect)}{_cost(effect, effect['cost'])}"


def group_line(group: Mapping[str, Any]) -> str:
    """Return `layers 0 to 3: 1 row per call, 40 B instead of 55 (-26 %); ends because …`."""
    overlaps = ", output may overlap its input" if group.get("overlaps") else ""
    return f"{_layers([group])}: {_rows(group)} per call, {_saving(group)}{overlaps}; ends because: {group['ends']}"


def explained(effect: Mapping[str, Any]) -> list[str]:
    """Return the lines of `doit explain`: the effect, and each group below it."""
    return [f"{'streaming':12} {effect_line(effect)}", *(f"  {group_line(group)}" for group in effect["groups"])]


def groups_section(effect: Mapping[str, Any] | None) -> list[str]:
    """Return the section of the Markdown page, or nothing."""
    if effect is None or not effect["groups"]:
        return []
    lines = ["", "## Layers by rows", "", markdown_row(_COLUMNS), markdown_row(["---" for _ in _COLUMNS])]
    return [*lines, *(markdown_row(list(map(shortened, cells))) for cells in group_cells(effect))]


def group_cells(effect: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the table cells of each group.

    Layers, rows per call, bytes, bytes as whole images, and the reason for the group's end.
    """
    return [
        (_span(group), _rows(group), f"{group['bytes']:,}", f"{group['whole_bytes']:,}", group["ends"])
        for group in effect["groups"]
    ]


def rows_of(layer: Mapping[str, Any]) -> str:
    """Return such as `1 of 48`, the rows of a call and of the image; '' for whole images."""
    rows = layer.get("rows")
    return f"{rows['call']} of {rows['image']}" if rows else ""


def buffer_rows(tensor: Mapping[str, Any]) -> str:
    """Return the rows of a rolling buffer: `3 of 48 rows`; '' for a whole tensor."""
    if "rows" not in tensor:
        return ""
    held, height = tensor["rows"], tensor["height"]
    return f"{held} of {height} rows" if held < height else f"{held} rows with padding"


def _layers(groups: list[Mapping[str, Any]]) -> str:
    several = len(groups) > 1 or groups[0]["last"] > groups[0]["first"]
    return f"layer{'s' if several else ''} {', '.join(map(_span, groups))}"


def _span(group: Mapping[str, Any]) -> str:
    first, last = group["first"], group["last"]
    return f"{first} to {last}" if last > first else str(first)


def _rows(group: Mapping[str, Any]) -> str:
    counts = list(group["rows"].values())
    if len(set(counts)) == 1:
        return f"{counts[0]} row{'s' if counts[0] > 1 else ''}"
    return f"{', '.join(map(str, counts))} rows"


def _saving(effect: Mapping[str, Any]) -> str:
    before, after = effect["whole_bytes"], effect["bytes"]
    share = f" (-{100 * (before - after) / before:.0f} %)" if before > after else ""
    return f"{after:,} B instead of {before:,}{share}"


def _cost(effect: Mapping[str, Any], total: float) -> str:
    if not total:
        return ""
    return f", estimated {100 * effect['extra'] / total:+.1f} % {effect['unit']}"
