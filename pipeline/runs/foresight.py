"""What can be known early is said early: stages look ahead before the first of a plan runs, and when it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.artifacts.store import Artifact
from pipeline.errors import PipelineError
from pipeline.keys.planner import Plan
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import stage_error
from pipeline.project import project_of
from pipeline.runs.elsewhere import Folders
from stages.base import StageError


class Foresight:
    """Asks the stages of a plan, as far as `until` ('': all), whether they are sure to fail.

    Where a stage makes another network of the recipe's model, those after it know nothing of that one before import.
    """

    def __init__(self, plan: Plan, root: Path, until: str = "") -> None:
        kinds = [action.kind for action in plan]
        self._plan = plan
        self._root = root
        self._actions = plan.actions[: kinds.index(until) + 1 if until else None]
        self._another = any(action.stage.new_model for action in self._actions)
        self._asked: list[tuple[bool, bool]] = []

    def look(self, made: Mapping[str, Artifact]) -> None:
        """Ask them, once without artifacts, once when the first stage has left its own, once when import has.

        `made` has the artifacts that are there, by the names of their stages. Raises StageFailed, StageCrashed.
        """
        imported = any(action.stage.role == "import" and action.kind in made for action in self._actions)
        begun = (self._actions[0].kind in made, imported)
        if begun in self._asked:
            return
        self._asked.append(begun)
        there: dict[str, Artifact] = {}
        for action in self._actions:
            known = imported or not self._another or action.stage.new_model
            if action.kind not in made and known:
                try:
                    action.stage.foresee(action.config, action.model, action.target, self._root, Folders(dict(there)))
                except StageError as error:
                    raise self._plan.sources.stage_failure(action.kind, error, action.stage.kind) from error
                except (PipelineError, KeyboardInterrupt):
                    raise
                except BaseException as error:  # also sys.exit
                    raise stage_error(action.kind, error, plugins_of(project_of(self._root))) from error
            # What follows reads this one's artifact, which may not be there, and not that of an earlier stage.
            there.pop(action.stage.role, None)
            if action.kind in made:
                there[action.stage.role] = made[action.kind]
