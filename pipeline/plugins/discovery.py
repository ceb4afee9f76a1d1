"""Discovery of plug-ins in a project and in installed packages, without importing them.

    plugins/stages/prune.py           a module with STAGE, or a package
    plugins/kernels/acme/             a package with FOLDER (stages.backends.kernels.folder) of the same name
    plugins/accelerators/acme/        a package with ACCELERATOR and FOLDER (stages.backends.accelerators.accelerator)
    plugins/simulators/renode.py      a module with SIMULATOR (stages.backends.simulators.outside)
    plugins/models/tiny.py            a module with `build(dtype, seed)`, the bytes of a TFLite file
    plugins/operators/gate.py         a module with OPERATORS (stages.ir.operators.declaration.Operator)
    plugins/exports/bazel/            a package with FORM (stages.delivery.export.form)
    plugins/targets/acme.yaml         cores and boards, as in pipeline.yaml

A distribution declares the same with entry points. Group: `firmline.kernels`, and so on; name: the plug-in's name;
value: its module. A value of `firmline.targets` is a package with YAML files, or a YAML file without suffix.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.project import Project
from stages.support.messages import escape
from stages.support.options.names import invalid_name
from stages.support.system.loaded_code import make_package, record

KINDS = ("stages", "kernels", "accelerators", "targets", "simulators", "models", "operators", "exports")
PLUGIN_FOLDER = "plugins"
# Top package of plug-in modules; each project has a sub-package.
_PACKAGE = "firmline_plugins"


@dataclass(frozen=True)
class Plugin:
    """A plug-in: module ('' for YAML), file or folder, and name in messages."""

    name: str
    module: str
    path: Path
    display_name: str


# By kind and name.
Plugins = Mapping[str, Mapping[str, Plugin]]


@cache
def plugins_of(project: Project) -> Plugins:
    """Return all plug-ins of a project and the environment.

    Raises PipelineError for duplicates.
    """
    plugins: dict[str, dict[str, Plugin]] = {kind: {} for kind in KINDS}
    for kind, plugin in (*_of_project(project), *_of_environment()):
        for part in plugin.name.split("/"):
            if wrong := invalid_name(part):
                raise PipelineError(f"plug-in {escape.name(plugin.display_name)}: {wrong}")
        other = plugins[kind].setdefault(plugin.name, plugin)
        if other is not plugin:
            raise PipelineError(
                f"duplicate plug-in '{escape.name(plugin.name)}' of {kind}: {other.display_name}, {plugin.display_name}"
            )
    return plugins


def _of_project(project: Project) -> Iterator[tuple[str, Plugin]]:
    folder = project.root / PLUGIN_FOLDER
    if not folder.is_dir():
        return
    package = package_name(folder)
    for kind in KINDS:
        for path in sorted((folder / kind).glob("*")):
            if path.name.startswith((".", "_")) or not _is_plugin(kind, path):
                continue
            module = "" if kind == "targets" else f"{package}.{kind}.{path.stem}"
            yield kind, Plugin(path.stem, module, path, project.display_path(path))
    make_package(package, folder)


def package_name(folder: Path) -> str:
    """Return the package name for the modules in a project's plug-in folder."""
    return f"{_PACKAGE}.p{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"


def _is_plugin(kind: str, path: Path) -> bool:
    if kind == "targets":
        return path.suffix in (".yaml", ".yml")
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def _of_environment() -> Iterator[tuple[str, Plugin]]:
    declared = entry_points()
    for kind in KINDS:
        for entry in declared.select(group=f"firmline.{kind}"):
            distribution = entry.dist.name if entry.dist is not None else "an unknown distribution"
            display_name = f"{entry.name} = {entry.value} of {distribution}"
            path = _module_path(entry)
            if path is None:
                raise PipelineError(f"plug-in {display_name}: module not found", hint=f"group firmline.{kind}")
            if kind != "targets":
                record(entry.module.partition(".")[0])
                yield kind, Plugin(entry.name, entry.module, path, display_name)
                continue
            files = [path] if path.is_file() else sorted(path.glob("*.yaml"))
            yield from (
                (kind, Plugin(f"{entry.name}/{file.stem}", "", file, f"{file.name} of {display_name}"))
                for file in files
            )


def _module_path(entry: EntryPoint) -> Path | None:
    """Return the file or folder of an entry point's module, without importing it."""
    top, *rest = entry.module.split(".")
    spec = find_spec(top)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    start = Path(folders[0]) if folders else Path(spec.origin or "")
    path = start.joinpath(*rest)
    candidates = (path, path.with_name(f"{path.name}.py"), path.with_name(f"{path.name}.yaml"))
    return next((candidate for candidate in candidates if candidate.exists()), None)
