"""The code by which a machine measures, and that of plug-ins: what a client and its workers compare.

Of a module that a process has loaded, what it was compiled from counts, and not what lies there since: a worker lives
over many an update of its clone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.artifacts.digest import hash_file
from pipeline.distributed.request import code_of
from pipeline.plugins.discovery import plugins_of
from pipeline.project import Project
from stages.backends.targets.places import accelerator_code, device_code, kernel_code, plugin_code, simulator_code
from stages.backends.targets.spec import Target
from stages.support.system.installation import INSTALLATION
from stages.support.system.loaded_code import loaded_digest, package_files

# That of the pipeline is what this process has loaded; the loader of the stages remembers theirs.
PIPELINE = code_of(INSTALLATION, "pipeline")


def own_code() -> dict[str, str]:
    """sha256 of each file of Firmline's code, by its name below the installation, as this process runs it."""
    stages = code_of(INSTALLATION, "stages")
    return {**PIPELINE, **_as_loaded(stages, {name: INSTALLATION / name for name in stages})}


def plug_in_code(targets: Iterable[Target], project: Project) -> dict[str, str]:
    """sha256 of each file that plug-ins add to a measurement on these targets, by a name without its place."""
    files: dict[str, Path] = {}
    for target in targets:
        for added in (plugin_code, kernel_code, accelerator_code, simulator_code, device_code):
            files |= added(target)
    for one in plugins_of(project)["operators"].values():
        files |= {f"operators/{name}": path for name, path in package_files(one.path).items()}
    return _as_loaded({name: hash_file(path) for name, path in files.items()}, files)


def _as_loaded(digests: Mapping[str, str], files: Mapping[str, Path]) -> dict[str, str]:
    found = dict(digests)
    for name, path in files.items():
        loaded = loaded_digest(path)
        if loaded is not None and loaded != digests[name]:
            found[name] = f"{loaded[:12] or 'other bytecode'}, loaded before it changed"
    return found
