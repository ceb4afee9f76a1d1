"""What a network's tuning found: what costs alone would have chosen, priced by what was measured, and layouts tried."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import TYPE_CHECKING

from stages.base import StageError
from stages.tensorize.costs import variant
from stages.tensorize.plan import Found, FoundLayer, TriedLayout

if TYPE_CHECKING:
    from stages.graph import LayerView
    from stages.kernels.kernel import Kernel
    from stages.tensorize.choices import Chosen
    from stages.tensorize.select import Choice
    from stages.tensorize.setting import Setting

Described = dict[str, tuple[str, float | None]]
"""Name of a layer -> what computes it, and what that takes."""


def found(before: Chosen, now: Chosen, setting: Setting, views: Iterable[LayerView] = ()) -> Found:
    """The choices made `before`, without the tuning, beside those made with it, as `setting` prices both.

    `views` are layers in the layouts that were weighed for them (stages.tensorize.layouts.weighed).
    """
    first, second, tried = _described(before, setting), _described(now, setting), _tried(views, setting)
    layers = []
    for name in dict.fromkeys((*second, *first)):
        (old, was), (new, takes) = first.get(name, ("", None)), second.get(name, ("", None))
        layers.append(
            FoundLayer(name=name, before=old, before_cost=was, now=new, now_cost=takes, layouts=tried.get(name, ()))
        )
    return Found(before=_total(first), now=_total(second), layers=tuple(layers))


def _total(described: Described) -> int:
    return round(fsum(cost or 0 for _, cost in described.values()))


def _described(chosen: Chosen, setting: Setting) -> Described:
    made: Described = {}
    for index, choice in chosen.choices.items():
        view = chosen.graph.view(chosen.graph.layers[index])
        cost = setting.costs.price(choice.kernel, view, choice.params, setting.target).cost
        layouts = _special(view)
        made[view.layer.name] = (" ".join([_variant(choice), *(f"({layout})" for layout in layouts)]), cost)
    return made


def _variant(choice: Choice) -> str:
    kernel: Kernel = choice.kernel
    return variant(kernel, choice.params)


def _special(view: LayerView) -> list[str]:
    """The layouts that the layer reads and writes, where they are not NHWC."""
    images = [tensor for tensor in (*view.inputs, *view.outputs) if len(tensor.shape) == 4]
    return list(dict.fromkeys(str(tensor.layout) for tensor in images if not tensor.lies_as("NHWC")))


def _tried(views: Iterable[LayerView], setting: Setting) -> dict[str, tuple[TriedLayout, ...]]:
    """By layer, what is best in each layout; nothing for layers that were weighed in one only, or are transforms."""
    best: dict[str, dict[str, TriedLayout]] = {}
    for view in views:
        if view.layer.kind == "layout":
            continue
        try:
            choice = setting.choose(view, None)
        except StageError:
            continue
        tried = TriedLayout(layout=_layouts(view), kernel=_variant(choice), cost=choice.cost)
        best.setdefault(view.layer.name, {}).setdefault(tried.layout, tried)
    return {name: tuple(each.values()) for name, each in best.items() if len(each) > 1}


def _layouts(view: LayerView) -> str:
    """`NHWC -> NCHW16c`, `NHWC`: of the images that it reads, and that it writes."""
    sides = [
        "+".join(dict.fromkeys(str(tensor.layout) or "NHWC" for tensor in side if len(tensor.shape) == 4))
        for side in (view.inputs, view.outputs)
    ]
    return " -> ".join(dict.fromkeys(filter(None, sides)))
