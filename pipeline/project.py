"""The two folders of a run: the project, which is the user's, and the installation, which is Firmline.

    project         recipes/, pipeline.yaml with cores and boards of its own, models, costs/; build/ and .firmline/ are
                    made there
    installation    the code, the built-in pipeline.yaml and recipes/, measured costs; nothing is written there

In a clone of Firmline both are the same folder. A project's recipes hide built-in ones of the same name, its cores and
boards add to the built-in ones.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PipelineError
from stages.messages import escape
from stages.system.installation import INSTALLATION, is_clone
from stages.system.ownership import VARIABLE, foreign, user_name

PROJECT_FILE = "pipeline.yaml"
RECIPES = "recipes"
DODO = "dodo.py"
# What of a project is read as code or as settings, or run: the store has programs.
_LOADED = (PROJECT_FILE, RECIPES, "plugins", DODO, "costs", ".firmline")
# What the one line of a project's dodo.py imports.
_OURS = "firmline.dodo"
# How messages call the installation's folder.
_BUILT_IN = "<firmline>"


@dataclass(frozen=True)
class Project:
    """A project's folder, absolute, and the installation that it is run with."""

    root: Path
    installation: Path = INSTALLATION

    @property
    def is_standalone(self) -> bool:
        """Whether there is nothing but this folder: it is the installation itself."""
        return self.root == self.installation

    @property
    def folders(self) -> tuple[Path, ...]:
        """The project's folder, then the installation's where that is another."""
        return (self.root,) if self.is_standalone else (self.root, self.installation)

    @property
    def recipes(self) -> tuple[Path, ...]:
        """The folders of recipes; what the first has hides what the second has."""
        return tuple(folder / RECIPES for folder in self.folders)

    def display_path(self, path: Path) -> str:
        """A path as messages call it: relative to the project, `<firmline>/...`, or whole when it lies elsewhere."""
        # An environment, and so the installation, may lie inside of the project.
        if not self.is_standalone and path.is_relative_to(self.installation):
            return str(_BUILT_IN / path.relative_to(self.installation))
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)


def project_of(root: Path | Project) -> Project:
    """A project as it is; a folder as one that stands alone, with code, cores and recipes of its own."""
    return root if isinstance(root, Project) else Project(root, root)


def find_project(start: Path) -> Project:
    """The project that a folder belongs to.

    The nearest folder upwards with pipeline.yaml and recipes/, or with a dodo.py that `doit init` wrote. Without one
    it is the clone that runs; of an installed package the folder itself.
    """
    for folder in (start, *start.parents):
        # Another clone is a project of its own code.
        if folder == INSTALLATION or (_is_project(folder) and not is_clone(folder)):
            return Project(folder)
    return Project(INSTALLATION if is_clone() else start)


def current_project() -> Project:
    """The project of the current directory. Raises PipelineError when that is gone, or is another user's."""
    try:
        return check_owner(find_project(Path.cwd()))
    except FileNotFoundError:
        if is_clone():
            return Project(INSTALLATION)
        raise PipelineError("the current folder is gone", hint="change to another one") from None


def check_owner(project: Project) -> Project:
    """The project as it is. Raises PipelineError, before anything of it is loaded, where it is another user's."""
    found = None if project.is_standalone else foreign(project.root, _LOADED)
    if found is None:
        return project
    path, owner = found
    raise PipelineError(
        f"{escape.name(str(path), 200)} belongs to {owner}, not to {user_name(os.geteuid())}; "
        "a project has code that would run as you",
        hint=f"if you trust it: {VARIABLE}={shlex.quote(str(project.root))}\n"
        "(containers often mount folders of another owner; docs/how-to/install.md)",
    )


def _is_project(folder: Path) -> bool:
    try:
        if (folder / PROJECT_FILE).is_file() and (folder / RECIPES).is_dir():
            return True
        return _OURS in (folder / DODO).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
