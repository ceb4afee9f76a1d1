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
    """Functions of the sources of kernels that this target has first, which no layer calls, nor another function."""
    kernels = {outcome.trial.kernel.name: outcome.trial.kernel for outcome in outcomes}.values()
    words = set(re.findall(r"\w+", "\n".join({outcome.body for outcome in outcomes})))
    sources: tuple[set[Path], set[Path]] = (set(), set())
    for kernel in kernels:
        files = {kernel_file(kernel.folder.path, source).resolve() for source in kernel.sources}
        sources[rank(kernel, target) > 0].update(files)
    own, seen = ({compiled(target, source) for source in files} for files in (sources[0] - sources[1], sources[1]))
    defined = re.findall(r" T (\w+)$", _listed(target, "nm", "-g", own), re.MULTILINE)
    used = re.findall(r" R_\w+ +([A-Za-z]\w*)", _listed(target, "objdump", "-r", own | seen))
    return sorted({*defined} - words - {*used})


def _listed(target: Target, command: str, option: str, objects: Collection[Path]) -> str:
    """What a command of the target's compiler writes of the objects; nothing where all is TIR."""
    if not objects:
        return ""
    tool = target.compiler.command.removesuffix("gcc") + command
    return subprocess.run([tool, option, *objects], capture_output=True, text=True, check=True).stdout
