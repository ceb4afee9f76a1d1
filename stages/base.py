"""The interface of a stage: a function of its options, input artifacts and tools.

A stage does not depend on doit, on the artifact store or on other stages. It imports heavy libraries (tvm,
ai_edge_litert, jinja2, ...) inside `run`, so that reading a recipe stays fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from stages.support.action_inputs import ActionInputs as ActionInputs
from stages.support.cache import Cache as Cache
from stages.support.messages.stage_error import StageError as StageError
from stages.support.messages.stage_error import error_at as error_at
from stages.support.options.strict_model import StrictModel
from stages.support.system.loaded_code import note_class
from stages.support.tool import Tool as Tool
from stages.support.tool import ToolIdentity as ToolIdentity

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.models.sources import ModelSource


class StageConfig(StrictModel):
    """Base of the options of each stage; strict and frozen. `kind` distinguishes the stages."""


C = TypeVar("C", bound=StageConfig)


def no_progress(message: str, fraction: float | None = None) -> None:
    """Progress callback that discards its arguments."""


@dataclass(frozen=True)
class Job(Generic[C]):
    """Everything that a run of a stage may read, and the folder that it may write.

    config    instance of the stage's config class, or of a subclass that adds `kind`
    inputs    kind of each consumed stage -> folder of its artifact (read-only)
    out       empty folder. When `run` returns, its regular files become the artifact and read-only. Links are not
              content.
    files     name -> external file whose digest is part of the key, such as the model file
    tools     the tools that `Stage.inputs` named, by name. Run a program by its `path`, not by its command.
    progress  `progress(message, fraction)`; any thread may call it at any time
    log       `log(line)` appends to the run's log.txt, which is stored with the artifact for runs that reuse it
    cache     store of partial results that other recipes share; None without a store
    """

    config: C
    model: ModelSource
    target: Target
    inputs: Mapping[str, Path]
    out: Path
    files: Mapping[str, Path] = field(default_factory=dict)
    tools: Mapping[str, ToolIdentity] = field(default_factory=dict)
    progress: Callable[..., None] = no_progress
    log: Callable[[str], None] = lambda line: None
    cache: Cache | None = None


class Stage(ABC, Generic[C]):
    """One step of the pipeline.

    kind          name in recipes, keys and reports
    config        pydantic model of its options; schema, help, keys and errors derive from it
    consumes      kinds of the stages whose artifacts `run` reads
    may_consume   kinds of the stages whose artifacts it reads if the recipe has them; `Job.inputs` may lack them
    provides      kind of the stage whose artifact this one replaces for all later stages, with the same files; '': none
    options_of    kind of the stage whose options in a recipe include this stage's; these decide whether it is `wanted`
    new_model     whether its artifact is another network than the recipe's model
    exclusive     whether only one such stage may run at a time in a process: TVM's state is not thread-safe

    A stage needs `run`, and `inputs` if it reads more than its options and the artifacts that it consumes. The key is
    the digest of `parameters`, of `inputs`, of the content of the consumed artifacts, and of the class's own files.
    `run` must depend on nothing else: not on time, the recipe's name, the environment or paths. A stage that loads a
    module of Firmline that is not in its key fails.
    """

    kind: ClassVar[str]
    config: ClassVar[type[StageConfig]]
    consumes: ClassVar[tuple[str, ...]] = ()
    may_consume: ClassVar[tuple[str, ...]] = ()
    provides: ClassVar[str] = ""
    options_of: ClassVar[str] = ""
    new_model: ClassVar[bool] = False
    exclusive: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        note_class(cls)

    @property
    def role(self) -> str:
        """Kind of artifact that it provides; other stages consume it under this name."""
        return self.provides or self.kind

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Whether the recipe's options for `options_of` make it part of the sequence."""
        return True

    def parameters(self, config: C) -> dict[str, Any]:
        """Return the options that `run` reads, as JSON values for the action key."""
        return config.model_dump(mode="json", exclude={"kind"})

    def shared(self, config: C) -> bool:
        """Whether the artifact may be sent to other machines.

        If not, neither it nor anything derived from it is sent, and the process that planned them runs them.
        """
        return True

    def inputs(self, config: C, model: ModelSource, target: Target) -> ActionInputs:
        """Return the action inputs: tools, files, code and fields of the target.

        Called for each plan, and again after `run` to find code that was added meanwhile. So it must be fast.
        """
        return ActionInputs()

    def preflight(
        self, config: C, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Preflight check: raise StageError for inputs that `run` is certain to refuse.

        Called before a plan runs, and again after its first stage. `artifacts` has the folders of the existing ones, by
        kind. It must be cheap, and must not report errors that `run` would not.
        """

    def render(self, report: dict[str, Any], width: int) -> Any:
        """Return a rich renderable of `width` columns to show at the end of a run, or None.

        `report` is report.json of the build folder. Only the report stage shows something.
        """
        return None

    @abstractmethod
    def run(self, job: Job[C]) -> None:
        """Read `job` and write `job.out`. Raises StageError for mistakes that the user can correct.

        Any other exception is a bug, with its traceback in log.txt. A full disk (OSError) is reported as such.
        """
