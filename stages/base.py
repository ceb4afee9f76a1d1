"""The interface of a stage: a function of its options, input artifacts and tools.

A stage does not depend on doit, on the artifact store or on other stages. It imports heavy libraries (tvm,
ai_edge_litert, jinja2, ...) inside `run`, so that reading a recipe stays fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from stages.support.cache import Cache as Cache
from stages.support.messages.stage_error import StageError as StageError
from stages.support.messages.stage_error import error_at as error_at
from stages.support.options.strict_model import StrictModel
from stages.support.system.loaded_code import has_code, note_class, plug_in_files, source_file
from stages.support.tool import Tool as Tool
from stages.support.tool import ToolIdentity as ToolIdentity

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.models.spec import ModelSource


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
    tools     the tools that `Stage.tools` named, by name. Run a program by its `path`, not by its command.
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

    kind           name in recipes, keys and reports
    config         pydantic model of its options; schema, help, keys and errors derive from it
    consumes       kinds of the stages whose artifacts `run` reads
    may_consume    kinds of the stages whose artifacts it reads if the recipe has them; `Job.inputs` may lack them
    provides       kind of the stage whose artifact this one replaces for all later stages, with the same files; '':
                   none
    options_of     kind of the stage whose options in a recipe include this stage's; these decide whether it is `wanted`
    new_model      whether its artifact is another network than the recipe's model
    sources        globs, relative to Firmline's folder, of code whose content is part of the action key, with all
                   modules that it imports (pipeline.keys.imports)
    target_fields  top-level fields of the target that `run` reads; only these are part of the action key
    exclusive      whether only one such stage may run at a time in a process: TVM's state is not thread-safe

    The key is the digest of these and of the content of the consumed artifacts. `run` must depend on nothing else: not
    on time, the recipe's name, the environment or paths.

    Every pattern in `sources` matches a file (a test checks it). Imported modules are included, so `sources` names the
    stage's modules and files that are not Python. `target_sources` names modules that are imported under a computed
    name. A stage that loads another module of the project fails. Files of plug-in classes count as well (`own_files`).
    """

    kind: ClassVar[str]
    config: ClassVar[type[StageConfig]]
    consumes: ClassVar[tuple[str, ...]] = ()
    may_consume: ClassVar[tuple[str, ...]] = ()
    provides: ClassVar[str] = ""
    options_of: ClassVar[str] = ""
    new_model: ClassVar[bool] = False
    sources: ClassVar[tuple[str, ...]]
    target_fields: ClassVar[tuple[str, ...]] = ()
    exclusive: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "foresee" in vars(cls):  # the former name, in plug-ins
            cls.preflight = vars(cls)["foresee"]  # type: ignore[method-assign]
        note_class(cls)

    @property
    def role(self) -> str:
        """Kind of artifact that it provides; other stages consume it under this name."""
        return self.provides or self.kind

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Whether the recipe's options for `options_of` make it part of the chain."""
        return True

    def parameters(self, config: C) -> dict[str, Any]:
        """Return the options that `run` reads, as JSON values for the action key."""
        return config.model_dump(mode="json", exclude={"kind"})

    def shared(self, config: C) -> bool:
        """Whether the artifact may be sent to other machines.

        If not, neither it nor anything derived from it is sent, and the process that planned them runs them.
        """
        return True

    @classmethod
    def own_files(cls, known: Container[Path]) -> dict[str, Path]:
        """Return the files of this class and its bases that are not among `known`.

        Their names do not depend on the location. Includes the files that belong to them
        (stages.support.system.loaded_code.plug_in_files). Raises LookupError for a class without a file.
        """
        files: dict[str, Path] = {}
        for base in cls.__mro__:
            if base in (Stage, ABC, Generic, object):
                continue
            path = source_file(base)
            if path is None and has_code(base):
                raise LookupError(base.__qualname__)
            if path is not None and path not in known:
                files |= plug_in_files(base)
        return files

    def tools(self, config: C, target: Target) -> tuple[Tool, ...]:
        """Return the tools that `run` uses; their versions are part of the key.

        Called on every run. A missing or too old tool is an error before the run, with its name, the versions and
        `install`. A program is called once with `--version`.
        """
        return ()

    def model_tools(self, model: ModelSource) -> tuple[Tool, ...]:
        """Return the tools that `run` uses only for this model."""
        return ()

    def files(self, config: C, model: ModelSource, root: Path) -> dict[str, Path]:
        """Return the external files that `run` reads, by name; relative to `root`, the project.

        Do not check whether they exist: a missing file is reported at its line of the recipe.
        """
        return {}

    def with_files_beside(self, config: C, recipe: Path) -> C:
        """Return the options with the files beside the recipe file that `run` reads by default.

        Only existing files are added, for `files` to name.
        """
        return config

    def model_entry(self, model: ModelSource) -> dict[str, Any] | None:
        """Return the values of the recipe's model entry that are part of the action key."""
        return None

    def target_files(self, target: Target, root: Path) -> dict[str, Path]:
        """Return existing files below `root` that `run` reads for the target, by name.

        Called for Firmline's folder, then for the project's, whose files override those with the same name. Digests are
        part of the key, so a new file changes the key.
        """
        return {}

    def option_fields(self, config: C) -> tuple[str, ...]:
        """Return further target fields that `run` reads with these options."""
        return ()

    def option_files(self, config: C, target: Target, root: Path) -> dict[str, Path]:
        """Return further files, as `target_files`, that `run` reads with these options."""
        return {}

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """Return globs of further code, as `sources`, that `run` uses for this target."""
        return ()

    def target_code(self, target: Target) -> dict[str, Path]:
        """Return files of plug-in code that `run` uses for the target, by name.

        Names do not depend on the location. Digests are part of the key, like those of `sources`. `run` reads the files
        in place.
        """
        return {}

    def model_code(self, model: ModelSource) -> dict[str, Path]:
        """Return files of plug-in code, as `target_code`, for the recipe's model."""
        return {}

    def preflight(self, config: C, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]) -> None:
        """Preflight check: raise StageError for what `run` is certain to refuse.

        Called before a plan runs, and again after its first stage. `made` has the folders of the existing artifacts, by
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
