"""The targets and kernels that the suite is about: Firmline's, or those of the project that FIRMLINE_PROJECT names.

Of a project, its kernels that are not Firmline's, on the cores that have some.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pipeline.plugins.importing import declare_operators
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.kernels.kernel import Kernel
from stages.kernels.registry import kernels_of
from stages.operators.table import LAYERS, layer_of
from stages.targets.load import load_targets as load_built_in
from stages.targets.spec import Target

PROJECT = os.environ.get("FIRMLINE_PROJECT", "")


@cache
def _all_targets() -> Mapping[str, Target]:
    if not PROJECT:
        return load_built_in()
    project = Project(Path(PROJECT).resolve())
    declare_operators(project)
    return load_targets(project)


def load_target(name: str) -> Target:
    """A target by its name."""
    return _all_targets()[name]


def kernels(target: Target) -> dict[str, Kernel]:
    """The target's kernels that are held to the suite, by name: not those for operators of plug-ins alone."""
    found = {name: one for name, one in kernels_of(target).items() if not all(map(_is_outside, one.ops))}
    return {name: one for name, one in found.items() if not PROJECT or f"kernels/{one.folder.name}" in target.modules}


def _is_outside(kind: str) -> bool:
    return layer_of(kind) not in LAYERS


@cache
def target_names() -> tuple[str, ...]:
    """The cores; first those of the machine that builds, whose sanitizers see more than outputs."""
    cores = dict.fromkeys(target.core for target in _all_targets().values())
    held = [name for name in cores if not PROJECT or any("kernels/" in key for key in load_target(name).modules)]
    return tuple(sorted(held, key=lambda name: load_target(name).simulator.kind != "native"))
