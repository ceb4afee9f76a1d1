"""The two folders of a run.

    project         the user's: recipes/, pipeline.yaml, plugins/, models; build/ and .firmline/ are written there
    installation    Firmline's: code, built-in pipeline.yaml and recipes/; read-only

In a clone both are the same folder. A project's recipe hides a built-in recipe of the same name; its cores and boards
extend the built-in ones.
"""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PipelineError
from stages.support.messages import escape
from stages.support.system.installation import INSTALLATION, is_clone
from stages.support.system.ownership import VARIABLE, foreign_owner, user_name

PROJECT_FILE = "pipeline.yaml"
RECIPES = "recipes"
DODO = "dodo.py"
# Parts of a project that are loaded as code or settings, or executed (the store has programs).
_TRUSTED = (PROJECT_FILE, RECIPES, "plugins", DODO, "costs", ".firmline")
# Import in the dodo.py of a project.
_DODO_IMPORT = "firmline.dodo"
# Name of the installation folder in messages.
_BUILT_IN = "<firmline>"


@dataclass(frozen=True)
class Project:
    """A project folder (absolute) and its installation."""

    root: Path
    installation: Path = INSTALLATION

    @property
    def is_standalone(self) -> bool:
        """Whether the project is the installation itself, as in a clone."""
        return self.root == self.installation

    @property
    def folders(self) -> tuple[Path, ...]:
        """The project folder, then the installation if it is another folder."""
        return (self.root,) if self.is_standalone else (self.root, self.installation)

    @property
    def recipes(self) -> tuple[Path, ...]:
        """The folders of recipes, in order of precedence."""
        return tuple(folder / RECIPES for folder in self.folders)

    def display_path(self, path: Path) -> str:
        """Return a path for messages: relative to the project, `<firmline>/...`, or absolute."""
        # A virtual environment with the installation may lie inside of the project.
        if not self.is_standalone and path.is_relative_to(self.installation):
            return str(_BUILT_IN / path.relative_to(self.installation))
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)


def project_of(root: Path | Project) -> Project:
    """Return a project unchanged; make a folder a standalone project."""
    return root if isinstance(root, Project) else Project(root, root)


def find_project(start: Path) -> Project:
    """Return the project that contains a folder.

    It is the nearest parent with pipeline.yaml and recipes/, or with the dodo.py of `doit init`. Without one it is
    the running clone, or, for an installed package, the folder itself.
    """
    for folder in (start, *start.parents):
        # Another clone belongs to other code.
        if folder == INSTALLATION or (_is_project(folder) and not is_clone(folder)):
            return Project(folder)
    return Project(INSTALLATION if is_clone() else start)


def current_project() -> Project:
    """Return the project of the current directory. Raises PipelineError, see check_owner."""
    try:
        return check_owner(find_project(Path.cwd()))
    except FileNotFoundError:
        if is_clone():
            return Project(INSTALLATION)
        raise PipelineError("the current folder was deleted", hint="change to an existing folder") from None


def check_owner(project: Project) -> Project:
    """Return the project. Raises PipelineError if another user owns loaded files."""
    foreign_part = None if project.is_standalone else foreign_owner(project.root, _TRUSTED)
    if foreign_part is None:
        return project
    path, owner = foreign_part
    raise PipelineError(
        f"{escape.name(str(path), 200)} belongs to {owner}, not to {user_name(os.geteuid())}; "
        "its code would run as you",
        hint=f"if you trust it: {VARIABLE}={shlex.quote(str(project.root))}\n"
        "(containers often mount folders of another owner; docs/how-to/install.md)",
    )


def _is_project(folder: Path) -> bool:
    try:
        if (folder / PROJECT_FILE).is_file() and (folder / RECIPES).is_dir():
            return True
        return _DODO_IMPORT in (folder / DODO).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
