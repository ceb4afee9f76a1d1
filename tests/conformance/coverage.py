"""What a kernel has that no case of the suite reaches: classes of cases, values of parameters, functions."""

import re
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.places import kernel_file
from stages.backends.targets.spec import Target
from tests.conformance.case import Case
from tests.conformance.runner import Outcome, compiled
from tests.conformance.suite import (
    all_parameters,
    cases_of,
    mandatory,
    rank,
    trials,
)

_SOME = 16  # one case in so many mostly has all values of a parameter
_DECLARED = re.compile(r"^[\w \*]*?\b(\w+)\s*\([^;{}]*\)\s*;", re.MULTILINE)


def lacking(kernel: Kernel, target: Target, operator: str, wanted: Collection[str]) -> list[str]:
    """Which of the classes no mandatory case has that the kernel takes. No more cases are looked at than it needs."""
    left = set(wanted)
    for case in mandatory(operator):
        if not left:
            return []
        if left & _kinds(case) and kernel.is_for(case.view.op) and kernel.why_not(case.view, target) == "":
            left -= _kinds(case)
    return sorted(left.difference(*map(_kinds, cases_of(kernel, target, operator))))


def _kinds(case: Case) -> set[str]:
    return {part for kind in case.covers for part in (kind, kind.partition(":")[0])}


def unused_parameters(kernel: Kernel, target: Target, operator: str) -> list[str]:
    """Values of the kernel's parameters that no trial has, though the parameter allows them; `field=value`."""
    fields = list(kernel.params.model_fields)
    wanted = {(name, getattr(params, name)) for params in all_parameters(kernel) for name in fields}
    for every in (_SOME, 1):
        planned = trials(target, operator, 0, 0, (kernel.name,), every)
        wanted -= {(name, getattr(trial.params, name)) for trial in planned for name in fields}
        if not wanted:
            return []
    return sorted(f"{name}={value}" for name, value in wanted)


def uncalled(outcomes: Sequence[Outcome], target: Target) -> list[str]:
    """Functions that a kernel's headers declare and its sources define, and that no layer calls, nor another source."""
    kernels = {outcome.trial.kernel.name: outcome.trial.kernel for outcome in outcomes}.values()
    words = set(re.findall(r"\w+", "\n".join({outcome.body for outcome in outcomes})))
    missing = []
    for kernel in kernels:
        if rank(kernel, target):
            continue
        declared = {
            name
            for header in kernel.headers
            for name in _DECLARED.findall(kernel_file(kernel.folder.path, header).read_text())
        }
        objects = [compiled(target, kernel_file(kernel.folder.path, source).resolve()) for source in kernel.sources]
        defined, needed = _symbols(target, objects)
        missing += sorted((declared & defined) - words - needed)
    return missing


def _symbols(target: Target, objects: Sequence[Path]) -> tuple[set[str], set[str]]:
    """Names of functions that the objects define, and of those they need from others; none where all is TIR."""
    if not objects:
        return set(), set()
    nm = target.compiler.command.removesuffix("gcc") + "nm"
    text = subprocess.run([nm, "-g", *objects], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*[0-9a-f]* ([A-Za-z]) (\w+)$", text, re.MULTILINE)
    return {name for kind, name in found if kind == "T"}, {name for kind, name in found if kind == "U"}
