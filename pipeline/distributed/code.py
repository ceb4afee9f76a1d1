"""Digests of Firmline's and plug-ins' code, which a client and its workers compare.

For a loaded module, the source it was compiled from counts, not the present file: a worker outlives updates of its
clone.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.artifacts.digest import hash_file
from pipeline.distributed.machine_differences import code_of
from pipeline.plugins.discovery import plugins_of
from pipeline.project import Project
from stages.backends.targets.places import accelerator_code, device_code, kernel_code, plugin_code, simulator_code
from stages.backends.targets.spec import Target
from stages.support.system.installation import INSTALLATION
from stages.support.system.loaded_code import loaded_digest, package_files

# The pipeline's code at the start of this process; for stages, the loader remembers the loaded source.
PIPELINE = code_of(INSTALLATION, "pipeline")


def installed_code() -> dict[str, str]:
    """Return the SHA-256 of each file of Firmline's code, as this process runs it."""
    stages = code_of(INSTALLATION, "stages")
    return {**PIPELINE, **_as_loaded(stages, {name: INSTALLATION / name for name in stages})}


def plug_in_code(targets: Iterable[Target], project: Project) -> dict[str, str]:
    """Return the SHA-256 of each plug-in file for these targets, by a name without its folder."""
    files: dict[str, Path] = {}
    for target in targets:
        for added in (plugin_code, kernel_code, accelerator_code, simulator_code, device_code):
            files |= added(target)
    for plugin in plugins_of(project)["operators"].values():
        files |= {f"operators/{name}": path for name, path in package_files(plugin.path).items()}
    return _as_loaded({name: hash_file(path) for name, path in files.items()}, files)


def _as_loaded(digests: Mapping[str, str], files: Mapping[str, Path]) -> dict[str, str]:
    result = dict(digests)
    for name, path in files.items():
        loaded = loaded_digest(path)
        if loaded is not None and loaded != digests[name]:
            result[name] = f"{loaded[:12] or 'other bytecode'}, loaded before the file changed"
    return result
