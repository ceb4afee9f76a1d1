"""What a project and installed packages add: stages, kernels, targets, operators and more. Nothing is imported here.

    plugins/stages/prune.py           a module with STAGE, or a package
    plugins/kernels/acme/             a package with FOLDER (stages.kernels.folder); the folder's name is its
    plugins/accelerators/acme/        a package with ACCELERATOR and FOLDER (stages.accelerators.accelerator)
    plugins/simulators/renode.py      a module with SIMULATOR (stages.simulators.outside)
    plugins/models/tiny.py            a module with `build(dtype, seed)`, the bytes of a TFLite file
    plugins/operators/gate.py         a module with OPERATORS (stages.operators.declaration.Operator)
    plugins/exports/bazel/            a package with FORM (stages.export.form)
    plugins/targets/acme.yaml         cores and boards, as in pipeline.yaml

A distribution has the same by entry points: the group `firmline.kernels`, an entry's name, the module as its value; for
`firmline.targets` a package with the YAML files, or one such file's name without the suffix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.project import Project
from stages.messages import escape
from stages.options.names import why_not
from stages.system.loaded_code import make_package, record

KINDS = ("stages", "kernels", "accelerators", "targets", "simulators", "models", "operators", "exports")
PLUGIN_FOLDER = "plugins"
# The package that a project's plug-ins are modules of, below a name that says which project's.
_PACKAGE = "firmline_plugins"


@dataclass(frozen=True)
class Plugin:
    """One plug-in: the module to import, '' for YAML; the file or folder that it is; how messages call it."""

    name: str
    module: str
    path: Path
    display_name: str


#: By kind and name.
Plugins = Mapping[str, Mapping[str, Plugin]]


@cache
def plugins_of(project: Project) -> Plugins:
    """All plug-ins of a project and of this environment. Raises PipelineError for two of one name."""
    found: dict[str, dict[str, Plugin]] = {kind: {} for kind in KINDS}
    for kind, one in (*_of_project(project), *_of_environment()):
        for part in one.name.split("/"):
            if wrong := why_not(part):
                raise PipelineError(f"plug-in {escape.name(one.display_name)}: {wrong}")
        other = found[kind].setdefault(one.name, one)
        if other is not one:
            raise PipelineError(
                f"two plug-ins of {kind} are called '{escape.name(one.name)}': {other.display_name}, {one.display_name}"
            )
    return found


def _of_project(project: Project) -> Iterator[tuple[str, Plugin]]:
    folder = project.root / PLUGIN_FOLDER
    if not folder.is_dir():
        return
    package = package_name(folder)
    for kind in KINDS:
        for place in sorted((folder / kind).glob("*")):
            if place.name.startswith((".", "_")) or not _is_plugin(kind, place):
                continue
            module = "" if kind == "targets" else f"{package}.{kind}.{place.stem}"
            yield kind, Plugin(place.stem, module, place, project.display_path(place))
    make_package(package, folder)


def package_name(folder: Path) -> str:
    """The package that the modules in a project's folder of plug-ins are imported from."""
    return f"{_PACKAGE}.p{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"


def _is_plugin(kind: str, place: Path) -> bool:
    if kind == "targets":
        return place.suffix in (".yaml", ".yml")
    return place.suffix == ".py" or (place / "__init__.py").is_file()


def _of_environment() -> Iterator[tuple[str, Plugin]]:
    declared = entry_points()
    for kind in KINDS:
        for entry in declared.select(group=f"firmline.{kind}"):
            distribution = entry.dist.name if entry.dist is not None else "an unknown distribution"
            shown = f"{entry.name} = {entry.value} of {distribution}"
            place = _place(entry)
            if place is None:
                raise PipelineError(f"plug-in {shown}: there is no such module", hint=f"group firmline.{kind}")
            if kind != "targets":
                record(entry.module.partition(".")[0])
                yield kind, Plugin(entry.name, entry.module, place, shown)
                continue
            files = [place] if place.is_file() else sorted(place.glob("*.yaml"))
            yield from (
                (kind, Plugin(f"{entry.name}/{file.stem}", "", file, f"{file.name} of {shown}")) for file in files
            )


def _place(entry: EntryPoint) -> Path | None:
    """The file or folder of an entry's module, found without importing anything."""
    top, *rest = entry.module.split(".")
    spec = find_spec(top)
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    start = Path(folders[0]) if folders else Path(spec.origin or "")
    place = start.joinpath(*rest)
    candidates = (place, place.with_name(f"{place.name}.py"), place.with_name(f"{place.name}.yaml"))
    return next((each for each in candidates if each.exists()), None)
