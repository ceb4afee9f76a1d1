"""Preflight checks: stages report certain failures before the run, and again after import."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.artifacts.store import Artifact
from pipeline.errors import PipelineError
from pipeline.keys.planner import Plan
from pipeline.plugins.discovery import plugins_of
from pipeline.plugins.importing import stage_error
from pipeline.project import project_of
from pipeline.runs.worker_artifacts import ArtifactFolders
from stages.base import StageError


class PreflightCheck:
    """Runs the preflight checks of a plan's stages, up to `until` ('': all).

    If a stage replaces the recipe's model, later stages are checked only after import.
    """

    def __init__(self, plan: Plan, root: Path, until: str = "") -> None:
        kinds = [action.kind for action in plan]
        self._plan = plan
        self._root = root
        self._actions = plan.actions[: kinds.index(until) + 1 if until else None]
        self._model_changes = any(action.stage.new_model for action in self._actions)
        self._checked_states: list[tuple[bool, bool]] = []

    def run(self, artifacts: Mapping[str, Artifact]) -> None:
        """Check without artifacts, after the first stage, and after import: once for each.

        `artifacts` has the existing ones by stage name. Raises StageFailed, StageCrashed.
        """
        imported = any(action.stage.role == "import" and action.kind in artifacts for action in self._actions)
        state = (self._actions[0].kind in artifacts, imported)
        if state in self._checked_states:
            return
        self._checked_states.append(state)
        inputs: dict[str, Artifact] = {}
        for action in self._actions:
            can_check = imported or not self._model_changes or action.stage.new_model
            if action.kind not in artifacts and can_check:
                try:
                    action.stage.preflight(
                        action.config, action.model, action.target, self._root, ArtifactFolders(dict(inputs))
                    )
                except StageError as error:
                    raise self._plan.sources.stage_failure(action.kind, error, action.stage.kind) from error
                except (PipelineError, KeyboardInterrupt):
                    raise
                except BaseException as error:  # includes SystemExit
                    raise stage_error(action.kind, error, plugins_of(project_of(self._root))) from error
            # Later stages read this stage's artifact, not that of an earlier one with the same role.
            inputs.pop(action.stage.role, None)
            if action.kind in artifacts:
                inputs[action.stage.role] = artifacts[action.kind]
