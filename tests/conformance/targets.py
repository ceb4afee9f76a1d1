"""The targets and kernels that the suite is about: Firmline's, or those of the project that FIRMLINE_PROJECT names.

Of a project, its kernels that are not Firmline's, on the cores that have some.
"""

import os
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path

from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.backends.kernels.kernel import Kernel
from stages.backends.kernels.registry import folders_of, kernels_of
from stages.backends.targets.load import load_targets as load_built_in
from stages.backends.targets.spec import Target
from stages.ir.operators.declaration import Operator
from stages.ir.operators.table import plugin_operators

PROJECT = os.environ.get("FIRMLINE_PROJECT", "")


@cache
def _all_targets() -> Mapping[str, Target]:
    if not PROJECT:
        return load_built_in()
    return load_targets(Project(Path(PROJECT).resolve()))


def load_target(name: str) -> Target:
    """A target by its name."""
    return _all_targets()[name]


def kernels(target: Target) -> dict[str, Kernel]:
    """The target's kernels that are held to the suite, by name."""
    return dict(_kernels(target.name)) if target is load_target(target.name) else _held(target)


@cache
def _kernels(name: str) -> dict[str, Kernel]:
    return _held(load_target(name))


def _held(target: Target) -> dict[str, Kernel]:
    if PROJECT:
        return {name: k for name, k in kernels_of(target).items() if f"kernels/{k.folder.name}" in target.modules}
    return {name: kernel for name, kernel in kernels_of(target).items() if not _is_repeated(kernel, target)}


def _is_repeated(kernel: Kernel, target: Target) -> bool:
    """Whether an earlier core has the same machine code of the kernel.

    VLEN concerns only kernels that use vectors, the dot product only those with parameters, a draft of an extension
    only folders with headers for it.
    """
    if kernel.folder.generate_for_core is not None:
        return False
    if target.vlen is None and not any(record.generate_for_core for record in folders_of(target).values()):
        return False
    needs_vectors, has_variants = "vlen" in kernel.folder.needs, bool(kernel.params.model_fields)
    return any(
        other.compiler == target.compiler
        and kernel.folder.name in other.kernels
        and (not needs_vectors or (other.vlen == target.vlen and not has_variants))
        for other in takewhile(lambda other: other.name != target.core, _all_targets().values())
    )


@cache
def project_operators() -> Mapping[str, Operator]:
    """Operators of plug-ins that kernels of the project compute, by name in the schema; none without a project."""
    if not PROJECT:
        return {}
    ops = {op for name in target_names() for kernel in kernels(load_target(name)).values() for op in kernel.ops}
    return {
        name: operator
        for name, operator in plugin_operators().operators.items()
        if any(ops & set(layer.names()) for layer in operator.legalization.layers)
    }


@cache
def target_names() -> tuple[str, ...]:
    """The cores; first those of the machine that builds, whose sanitizers see more than outputs.

    Of RV64 only those with the shortest vectors: RV32 has the others.
    """
    targets = _all_targets().values()
    short = (one for one in targets if PROJECT or one.word_bits == 32 or one.vlen in (None, 128))
    cores = dict.fromkeys(target.core for target in short)
    held = [name for name in cores if not PROJECT or any("kernels/" in key for key in load_target(name).modules)]
    return tuple(sorted(held, key=lambda name: load_target(name).simulator.kind != "native"))
