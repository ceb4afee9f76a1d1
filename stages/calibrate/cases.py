"""What to measure: every layer that occurs, once for each signature, with every kernel that is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from stages.graph import LayerView, Layout
from stages.kernels import registry
from stages.tensor_layout import NCHW, NHWC
from stages.tensorize.costs import estimated, signature, variant
from stages.tensorize.forms import with_other_forms
from stages.tensorize.sharing import renames_only
from stages.tensorize.transforms import transform

if TYPE_CHECKING:
    from stages.graph import Graph, Tensor
    from stages.kernels.kernel import Kernel, KernelParams
    from stages.targets.spec import Target

# A kernel is not measured on a layer that takes it this many instructions, if another estimates a quarter of that.
_LONG = 1_000_000
_HOPELESS = 4
_HOPELESS_HERE = 16  # of one network: estimates may be off by that
# Of a target's RAM and ROM, what is left for everything but activations and weights: scratch, data; code.
_OTHER_RAM, _OTHER_ROM = 1 / 8, 1 / 4


@dataclass(frozen=True)
class Case:
    """One measurement: a layer, a kernel that can compute it, the kernel's parameters."""

    view: LayerView
    kernel: Kernel
    params: KernelParams
    signature: str
    variant: str
    estimate: float | None


@dataclass(frozen=True)
class Room:
    """Bytes of activations and of weights, of a layer or of all layers of a firmware."""

    activations: float
    weights: float

    def __add__(self, other: Room) -> Room:
        return Room(self.activations + other.activations, self.weights + other.weights)

    def __le__(self, other: Room) -> bool:
        return self.activations <= other.activations and self.weights <= other.weights


def room_of(target: Target) -> Room:
    """What the target's memory holds; without limit where the operating system provides it."""
    if target.memory is None:
        return Room(float("inf"), float("inf"))
    ram, rom = target.memory.region_of("arena").length, target.memory.region_of("weights").length
    return Room(ram * (1 - _OTHER_RAM) - target.memory.stack, rom * (1 - _OTHER_ROM))


def room_for(view: LayerView) -> Room:
    """What a layer takes, its weights not packed."""
    weights = sum(view.constant(role).nbytes for role in view.layer.constants)
    return Room(sum(tensor.bytes for tensor in (*view.inputs, *view.outputs)), weights)


def cases(graphs: Iterable[Graph], target: Target, everywhere: Iterable[Graph] = ()) -> list[Case]:
    """The measurements for all layers of the graphs, in all of their forms, in their order.

    Those of `everywhere` in planes and in rows too, whatever they are read and written in; the others only in layouts
    beside these. Layers without code and float layers have none, nor have those that the target's memory does not hold.
    """
    kernels, room = list(registry.kernels_of(target).values()), room_of(target)
    found: dict[tuple[str, str], Case] = {}
    given = [(graph, False) for graph in graphs] + [(graph, True) for graph in everywhere]
    for graph, planes in ((form, planes) for one, planes in given for form in (one, with_other_forms(one))):
        for layer in graph.layers:
            if layer.op.op == "float" or renames_only(graph, layer):
                continue
            view = graph.view(layer)
            for laid_out in (view, *in_layouts(view, kernels, planes=planes)):
                for case in _of_layer(laid_out, kernels, target) if room_for(laid_out) <= room else ():
                    found.setdefault((case.signature, case.variant), case)
    return list(found.values())


def cases_of_views(views: Iterable[LayerView], target: Target) -> list[Case]:
    """The measurements for these layers as they lie, each once, without those that the target's memory does not hold.

    Few kernels are hopeless here: `_HOPELESS` is of tables, for which much is measured.
    """
    kernels, room = list(registry.kernels_of(target).values()), room_of(target)
    found: dict[tuple[str, str], Case] = {}
    for view in views:
        for case in _of_layer(view, kernels, target, _HOPELESS_HERE) if room_for(view) <= room else ():
            found.setdefault((case.signature, case.variant), case)
    return list(found.values())


def in_layouts(view: LayerView, kernels: Iterable[Kernel], *, planes: bool = False) -> Iterator[LayerView]:
    """The layer in the layouts that kernels state beside NHWC and NCHW, which graphs have by themselves; or `planes`.

    And the transforms of its images, to such a layout and back.
    """
    images = [name for name in (*view.layer.inputs, *view.layer.outputs) if _is_image(view.tensors[name])]
    own = [Layout(text) for kernel in kernels if kernel.is_for(view.op) for text in kernel.layouts]
    usual = (NHWC,) if planes else (NHWC, NCHW)
    special = [layout for layout in dict.fromkeys(own) if layout not in usual]
    for read, written in product(dict.fromkeys(own), repeat=2) if special and images else ():
        if read in special or written in special:
            laid = {name: written if name in view.layer.outputs else read for name in images}
            yield replace(
                view, tensors={**view.tensors, **{name: _in(view.tensors[name], laid[name]) for name in laid}}
            )
    for name, layout in product(dict.fromkeys(images), special):
        for source, wanted in ((NHWC, layout), (layout, NHWC)):
            layer, copy = transform(_in(view.tensors[name], source), wanted, f"{name}/{wanted}")
            if copy.alias_of is None:
                yield LayerView(layer, {name: _in(view.tensors[name], source), copy.name: copy}, {})


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and not tensor.constant


def _in(tensor: Tensor, layout: Layout) -> Tensor:
    return tensor.model_copy(update={"layout": layout, "alias_of": None, "offset": 0})


def _of_layer(view: LayerView, kernels: Iterable[Kernel], target: Target, hopeless: int = _HOPELESS) -> Iterator[Case]:
    able = [kernel for kernel in kernels if kernel.is_for(view.op) and not kernel.why_not(view, target)]
    made = [
        Case(seen, kernel, params, signature(seen), variant(kernel, params), estimated(kernel, seen, params, target))
        for kernel, seen in ((kernel, kernel.seen(view)) for kernel in able)
        for params in kernel.candidates(seen, target)
    ]
    least = min((case.estimate for case in made if case.estimate is not None), default=0.0)
    for case in made:
        long = case.estimate is not None and case.estimate > _LONG
        if not (long and case.estimate is not None and case.estimate > hopeless * least):
            yield case
