"""Why a streamed group ends where it ends, and why there is none, for reports."""

from math import inf
from typing import Literal

from stages.lower.streaming.groups import Group, Grouping, GroupSearch
from stages.lower.streaming.window import why_not_by_rows
from stages.support.messages import escape


def why_group_ends(search: GroupSearch, grouping: Grouping, group: Group) -> str:
    """Return why a group of the search's result ends before the next layer."""
    network, end = search.network, group.end
    layers = network.graph.layers
    if network.is_emitted(end):
        tensor = group.described.tensors[group.described.layers[-1].output]
        saved = (tensor.height - group.schedule.capacity.get(tensor.name, 0)) * tensor.row_bytes
        return f"the network ends, and the application receives its rows: {saved:,} B less for the output"
    if end == len(layers):
        return "the network ends"
    if group.described.layers[-1].window.accumulates:
        return f"layer {end - 1} adds up all rows"
    following = next(place for place in network.cuts if place > end)
    for layer in layers[end:following]:
        if reason := why_not_by_rows(network.graph.view(layer)):
            return f"layer {layer.index}: {reason}"
    which = f"layer {end}" if following == end + 1 else f"layers {end} to {following - 1}"
    if network.described(group.first, following) is None:
        return f"{which}: padding, alignment or layout of the tensors does not allow rows"
    needed = search.least_bytes(group.first, following)
    if needed == inf:
        return f"{which}: no kernel for a few rows"
    if needed > grouping.bytes:
        return f"with {which} it would need {int(needed):,} bytes or more"
    return f"with {which} the network's tensors would not need less memory"


def why_port_is_whole(search: GroupSearch, port: Literal["input", "output"]) -> str:
    """Return why the application cannot pass the input's (or receive the output's) rows, or ''."""
    network, graph = search.network, search.network.graph
    names, cuts = (graph.inputs if port == "input" else graph.outputs), list(network.cuts)
    if len(names) != 1:
        return f"the network has {len(names)} {port}s"
    spans = [(0, cut) for cut in cuts[1:]] if port == "input" else [(cut, cuts[-1]) for cut in cuts[-2::-1]]
    if any(search.least_bytes(*span) < inf for span in spans):
        return ""
    first, end = spans[0]
    layers = graph.layers[first:end] if port == "input" else graph.layers[first:end][::-1]
    for layer in layers:
        reason = why_not_by_rows(network.graph.view(layer))
        window = network.windows[layer.index]
        if not reason and port == "output" and window is not None and window.accumulates:
            reason = f"{layer.kind} adds up all rows"
        if reason:
            return f"layer {layer.index} ({layer.kind} {escape.name(layer.name)}): {reason}"
    which = f"layer {layers[0].index} ({layers[0].kind} {escape.name(layers[0].name)})"
    if network.described(first, end) is None:
        return f"{which}: padding, alignment or layout of its tensors, or another layer that uses the {port}"
    return f"{which}: no kernel for a few rows"


def why_no_group(search: GroupSearch, share: float, limit: int | None) -> str:
    """Return why no group takes at most `share` more instructions or `limit` arena bytes."""
    network = search.network
    if not any(window is not None for window in network.windows):
        return "no layer works on rows of an image"
    peak = max(range(len(search.live)), key=search.live.__getitem__)
    if reason := why_not_by_rows(network.graph.view(network.graph.layers[peak])):
        return f"the layer that needs most memory computes whole tensors. Layer {peak}: {reason}"
    within = f" within {100 * share:.0f} % more instructions" if limit is None or search.live[peak] <= limit else ""
    return f"no group of layers saves enough memory{within}"
