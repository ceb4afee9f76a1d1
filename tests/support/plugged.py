"""Plug-ins of a project in a temporary folder."""

import sys
from pathlib import Path

from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import declare_operators
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from stages.ir.operators.table import declare


def write(folder: Path, name: str, text: str) -> None:
    """A file below `folder`, with the folders that it lies in."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def again(project: Project) -> Project:
    """The project as another process sees it."""
    plugins_of.cache_clear()
    registry_of.cache_clear()
    for name in [name for name in sys.modules if name.startswith("firmline_plugins")]:
        del sys.modules[name]
    return project


def with_operators(project: Project) -> Project:
    """The project, with its operators declared, as another process sees it."""
    again(project)
    declare(())
    declare_operators(project)
    return project


def edit(project: Project, name: str, old: str, new: str) -> None:
    """Another text in a file of the project, as another process sees it."""
    path = project.root / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with_operators(project)
