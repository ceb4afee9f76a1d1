"""Which cases run by which kernel on which target.

Kernels are those of the folders that the targets of `pipeline.yaml` name, so that a new one is held to its operators'
cases without a word here. A kernel runs all cases that it accepts on its first target, one in four on the first of the
other word size, and one in 24 on the rest, where the same sources are compiled for another core (`EVERY`).
"""

import pkgutil
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import product
from typing import Any, Literal, get_args, get_origin

from stages.backends.kernels.kernel import Kernel, KernelParams
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.graph import LayerView
from tests.conformance import operators
from tests.conformance.case import Case, drawn_inputs
from tests.conformance.draw import Draw
from tests.conformance.modes import bound_cases
from tests.conformance.outside import OutsideCases, can_be_drawn, within
from tests.conformance.runner import Trial
from tests.conformance.targets import kernels, load_target, project_operators, target_names

MOST_BOUNDS = 48  # cases beside the bounds of a kernel's modes, of each plain layer
MOST_VALUES = 13  # of an integer parameter that are tried
EVERY = (1, 4, 24)  # on the first target, on the first of another word size, elsewhere: one case in so many
TIR_ALONE = 5  # one case in so many, and one of each class


@cache
def operator_modules() -> dict[str, Any]:
    """The modules of `operators` that have cases, by name, and what stands for one of a plug-in's operator."""
    names = [module.name for module in pkgutil.iter_modules(operators.__path__)]
    found: dict[str, Any] = {name: import_module(f"{operators.__name__}.{name}") for name in names}
    outside = {one.kind: OutsideCases(one) for one in project_operators().values() if can_be_drawn(one)}
    return {name: module for name, module in found.items() if hasattr(module, "OPS")} | outside


@cache
def mandatory(operator: str) -> tuple[Case, ...]:
    return tuple(operator_modules()[operator].mandatory())


@cache
def each_operator() -> tuple[LayerView, ...]:
    """A layer of each operator that has cases."""
    return tuple({case.view.op.op: case.view for name in operator_modules() for case in mandatory(name)}.values())


@cache
def drawn(operator: str, seed: int, count: int) -> tuple[Case, ...]:
    made = []
    for number in range(count):
        draw = Draw(seed + number, ("int8", "uint8")[number % 2])
        module = operator_modules()[operator]
        layer = module.drawn(draw)
        inputs = getattr(module, "inputs", drawn_inputs)(draw, layer)
        near = within(layer) if isinstance(module, OutsideCases) else 0.0
        made.append(Case(f"drawn {seed + number} {draw.dtype}", ("drawn",), layer, inputs, near))
    return tuple(made)


def kernels_of(target: Target, operator: str) -> list[Kernel]:
    """The target's kernels for the operators of a module, and for activations of its bits, 8 where it does not say."""
    module = operator_modules()[operator]
    wanted, bits = set(module.OPS), getattr(module, "BITS", 8)
    return [kernel for kernel in kernels(target).values() if kernel.ops & wanted and bits in (0, kernel.bits)]


def chosen(target: Target, operator: str, only: Collection[str]) -> list[Kernel]:
    """Of `kernels_of` those that `only` names; all where it is empty."""
    return [kernel for kernel in kernels_of(target, operator) if not only or kernel.name in only]


def groups(target: Target) -> list[tuple[str, ...]]:
    """The modules of operators whose kernels the target has; those whose kernels share a source are one group."""
    parts: list[tuple[set[str], set[Any]]] = []
    for operator in operator_modules():
        own = kernels_of(target, operator)
        if not own:
            continue
        names, sources = {operator}, {(k.folder.path / source).resolve() for k in own for source in k.sources}
        for part in [part for part in parts if part[1] & sources]:
            parts.remove(part)
            names, sources = names | part[0], sources | part[1]
        parts.append((names, sources))
    return [tuple(sorted(names)) for names, _ in parts]


def rank(kernel: Kernel, target: Target) -> int:
    """0: the kernel's first target, 1: its first of another word size, 2: one of the rest."""
    return _rank(kernel.name, target.name)


@cache
def _rank(kernel: str, target: str) -> int:
    seen: list[int] = []
    for name in target_names():
        other = load_target(name)
        if kernel in kernels(other):
            if name == target:
                break
            seen.append(other.word_bits)
    return 0 if not seen else 2 if load_target(target).word_bits in seen else 1


def accepted(kernel: Kernel, target: Target, cases: Sequence[Case]) -> list[Case]:
    """Those that the kernel takes."""
    return [case for case in cases if kernel.is_for(case.view.op) and kernel.why_not(case.view, target) == ""]


def takes_some(kernel: Kernel, target: Target, operator: str) -> bool:
    """Whether the kernel takes any mandatory case of the module."""
    cases = mandatory(operator)
    return any(kernel.is_for(case.view.op) and kernel.why_not(case.view, target) == "" for case in cases)


@cache
def _accepted_mandatory(kernel: str, target: str, operator: str, every: int) -> tuple[Case, ...]:
    chosen = load_target(target)
    found = kernels(chosen)[kernel]
    cases = accepted(found, chosen, mandatory(operator))
    if every == 1 and rank(found, chosen) < 2:
        for plain in getattr(operator_modules()[operator], "PLAIN", ()):
            beside = list(bound_cases(found, chosen, plain))
            cases += beside[:: -(-len(beside) // MOST_BOUNDS) or 1]
    return tuple(cases)


def cases_of(kernel: Kernel, target: Target, operator: str, every: int = 1) -> tuple[Case, ...]:
    """The mandatory cases that the kernel takes on the target, those at the bounds of its modes among them.

    `every`: above 1 without the cases at bounds, since finding them is most of the work.
    """
    return _accepted_mandatory(kernel.name, target.name, operator, every)


def trials(
    target: Target, operator: str, seed: int, count: int, only: Collection[str] = (), every: int = 1
) -> list[Trial]:
    """What runs on the target: each kernel on its share of the cases, parameters in turn, in place where it may.

    `only` names kernels; all of the target's where it is empty. `every` leaves one case in so many of that share, and
    none where the kernel has had some on an earlier target.
    """
    made: list[Trial] = []
    for kernel in chosen(target, operator, only):
        if every > 1 and rank(kernel, target):
            continue
        cases = [*cases_of(kernel, target, operator, every), *accepted(kernel, target, drawn(operator, seed, count))]
        for number, case in enumerate(_share(cases, every * EVERY[rank(kernel, target)])):
            made.append(Trial(case, kernel, parameters(kernel, case, target, number)))
            if kernel.overlays(kernel.seen(case.view)) and (overlay := _overlay(case, number)) is not None:
                made.append(Trial(case, kernel, parameters(kernel, case, target, number + 1), overlay=overlay))
    return made


def meanings(
    target: Target, operator: str, seed: int, count: int, only: Collection[str] = (), every: int = 1
) -> list[Trial]:
    """The TIR alone of a share of what `trials` runs; none of what an earlier target has had."""
    made = []
    for kernel in chosen(target, operator, only):
        if kernel.calls or rank(kernel, target) == 2:
            continue
        cases = [*cases_of(kernel, target, operator, every), *accepted(kernel, target, drawn(operator, seed, count))]
        share = every * TIR_ALONE * EVERY[rank(kernel, target)]
        for number, case in enumerate(_share(cases, share)):
            made.append(Trial(case, kernel, parameters(kernel, case, target, number), tensorized=False))
    return made


def _share(cases: Sequence[Case], every: int) -> Iterator[Case]:
    """One case in `every` of each class, the first always; a case that is in several counts for its rarest."""
    sizes = Counter(kind for case in cases for kind in case.covers)
    seen: Counter[str] = Counter()
    for case in cases:
        rarest = min(case.covers, key=lambda kind: sizes[kind])
        if seen[rarest] % every == 0:
            yield case
        seen[rarest] += 1


def _overlay(case: Case, number: int) -> int | None:
    """An input that the arena may put the output on (stages/lower/arena/liveness.py), each in turn."""
    out, inputs = case.view.outputs[0], list(enumerate(case.view.inputs))
    able = [i for i, x in inputs if x.bytes == out.bytes and (x.layout == "NCHW") == (out.layout == "NCHW")]
    return able[number % len(able)] if able else None


def parameters(kernel: Kernel, case: Case, target: Target, number: int) -> KernelParams:
    """The kernel's candidates for the layer and all other values that its parameters may have, in turn."""
    view = kernel.seen(case.view)
    offered, every = list(kernel.candidates(view, target)), all_parameters(kernel)
    if number % 2 == 0 or len(every) == 1:
        return offered[number // 2 % len(offered)]
    for step in range(len(every)):
        params = every[(number // 2 + step) % len(every)]
        try:
            kernel.pack_for(view, params, target)
        except StageError:
            continue  # no form of this layer
        return params
    return offered[0]


@cache
def _every_value(params: type[KernelParams]) -> tuple[KernelParams, ...]:
    fields = [list(_values(field)) for field in params.model_fields.values()]
    return tuple(params(**dict(zip(params.model_fields, chosen, strict=True))) for chosen in product(*fields))


def all_parameters(kernel: Kernel) -> tuple[KernelParams, ...]:
    """Each combination of what the fields of the kernel's parameters allow; of integers the smallest."""
    return _every_value(kernel.params)


def _values(field: Any) -> Iterator[Any]:
    if get_origin(field.annotation) is Literal:
        yield from get_args(field.annotation)
    elif field.annotation is bool:
        yield from (False, True)
    elif field.annotation is int:
        low = next((int(part.ge) for part in field.metadata if hasattr(part, "ge")), 0)
        high = next((int(part.le) for part in field.metadata if hasattr(part, "le")), low + MOST_VALUES)
        yield from range(low, min(high, low + MOST_VALUES) + 1)
    else:
        yield field.default
