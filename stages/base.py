"""What every stage is: a function of its config, its input artifacts and its declared tools.

A stage knows nothing of doit, of the artifact store or of the other stages. It imports heavy libraries
(tvm, ai_edge_litert, jinja2, ...) inside `run`, so that reading a recipe stays fast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from stages.support.cache import Cache as Cache
from stages.support.messages.stage_error import StageError as StageError
from stages.support.messages.stage_error import blaming as blaming
from stages.support.options.strict_model import StrictModel
from stages.support.system.loaded_code import has_code, note_class, plug_in_files, source_file
from stages.support.tool import Tool as Tool
from stages.support.tool import ToolIdentity as ToolIdentity

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.ir.models.spec import ModelSource


class StageConfig(StrictModel):
    """Base of each stage's options, which are strict and frozen. `kind` tells the stages apart."""


C = TypeVar("C", bound=StageConfig)


def no_progress(message: str, fraction: float | None = None) -> None:
    """Progress callback that discards its arguments."""


@dataclass(frozen=True)
class Job(Generic[C]):
    """All that one run of a stage may read, and the one folder it may write.

    `inputs` maps the kind of each consumed stage to the folder of its artifact (read-only). `files` maps a name to
    an external file whose digest is part of the key (for example the model file, or a real input). `out` exists and
    is empty; whatever is in it when `run` returns becomes the artifact: regular files in any folders, no links (a link
    is no content), made read-only then. `progress(message, fraction)` may be called at any time and from any thread;
    `log(line)` goes to the run's log.txt, and is kept with the artifact for later runs that reuse it.

    `config` is an instance of the stage's config class, or of a subclass that adds `kind`. `tools` has what
    `Stage.tools` named, by name: run a program by its `path`, not by its command. `cache` keeps parts of the work that
    other recipes need too; None where nothing is kept.
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

    kind           the word used in recipes, keys and reports
    config         the pydantic model of its options (declared once; schema, help, keys and errors derive from it)
    consumes       kinds of the stages whose artifacts `run` reads
    may_consume    kinds of those whose artifacts it reads where the recipe has them: `Job.inputs` may lack them
    provides       kind of the stage whose artifact this one's takes the place of, for all stages after it: the same
                   files with the same meaning. '': its own kind
    options_of     kind of the stage among whose options in a recipe this one's are; it is in the chain where these make
                   it `wanted`
    new_model      whether what it leaves is another network than the recipe's model names
    sources        globs, relative to Firmline's folder, of the code whose bytes are part of the action key
                   with all modules that it imports (pipeline.keys.imports)
    target_fields  top-level fields of the target that `run` reads; only these are part of the action key
    exclusive      whether only one such stage may run at a time in a process: TVM's state is not thread-safe

    The key is the digest of these and of what the consumed artifacts hold, and of nothing else, so `run` must depend on
    nothing else: not on time, on the recipe's name, on the environment, on paths. Every pattern in `sources` matches a
    file (a test holds that). Modules are found by their imports, so `sources` names the stage's own, and files that are
    no Python; what is imported under a name made up at run time is in `target_sources`. A stage that loads another
    module of the project is refused. The files of a class that they do not name, a plug-in's, count as well
    (`own_files`).
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
        note_class(cls)

    @property
    def role(self) -> str:
        """The kind of artifact that it leaves, by which others consume it."""
        return self.provides or self.kind

    def wanted(self, options: Mapping[str, Any]) -> bool:
        """Whether options, as a recipe gives them for `options_of`, make it part of the chain."""
        return True

    def parameters(self, config: C) -> dict[str, Any]:
        """The options that `run` reads, as JSON values: they are part of the action key."""
        return config.model_dump(mode="json", exclude={"kind"})

    def shared(self, config: C) -> bool:
        """Whether others may have use for what it leaves.

        If not, neither it nor what is made of it is sent to them, and both are made by the process that planned them.
        """
        return True

    @classmethod
    def own_files(cls, known: Container[Path]) -> dict[str, Path]:
        """Files of this class and of those it derives from that are not among `known`, by a name without their place.

        With those that belong to them (stages.support.system.loaded_code.plug_in_files). Raises LookupError for a
        class in no file.
        """
        files: dict[str, Path] = {}
        for one in cls.__mro__:
            if one in (Stage, ABC, Generic, object):
                continue
            path = source_file(one)
            if path is None and has_code(one):
                raise LookupError(one.__qualname__)
            if path is not None and path not in known:
                files |= plug_in_files(one)
        return files

    def tools(self, config: C, target: Target) -> tuple[Tool, ...]:
        """Tools that `run` uses, so that their versions enter the key. Cheap: called on every run.

        A missing or too old tool stops the plan with its name, what was found, what is needed and `install`; a program
        is asked `--version`, once.
        """
        return ()

    def model_tools(self, model: ModelSource) -> tuple[Tool, ...]:
        """As `tools`, of what `run` uses for this model and not for every one."""
        return ()

    def files(self, config: C, model: ModelSource, root: Path) -> dict[str, Path]:
        """External files that `run` reads, by name. Relative paths in recipes are relative to `root`, the project's.

        A file that is not there is reported at the line of the recipe that names it: return the path and do not look.
        """
        return {}

    def with_files_beside(self, config: C, recipe: Path) -> C:
        """The options with files beside the recipe's own, `recipe`, that `run` reads unless told otherwise.

        Only files that exist, for `files` to name.
        """
        return config

    def model_entry(self, model: ModelSource) -> dict[str, Any] | None:
        """What of the recipe's model entry itself (not of a file that it names) is part of the action key."""
        return None

    def target_files(self, target: Target, root: Path) -> dict[str, Path]:
        """Files below `root` that `run` reads and that go with the target, by name, as in `Job.files`.

        Asked for Firmline's own folder, then for the project's, whose files count where both have one of a name.

        Only files that exist: their digests are part of the key, so one that appears makes another key.
        """
        return {}

    def option_fields(self, config: C) -> tuple[str, ...]:
        """As `target_fields`, of what `run` reads with these options alone."""
        return ()

    def option_files(self, config: C, target: Target, root: Path) -> dict[str, Path]:
        """As `target_files`, of what `run` reads with these options alone."""
        return {}

    def target_sources(self, target: Target) -> tuple[str, ...]:
        """As `sources`: globs of the code that `run` uses for this target and not for every one."""
        return ()

    def target_code(self, target: Target) -> dict[str, Path]:
        """Files of code that goes with the target and is not Firmline's, by a name without their place.

        Their digests are part of the key, as those of `sources` are; `run` reads the files where they lie.
        """
        return {}

    def model_code(self, model: ModelSource) -> dict[str, Path]:
        """As `target_code`, of code that goes with the recipe's model."""
        return {}

    def foresee(self, config: C, model: ModelSource, target: Target, root: Path, made: Mapping[str, Path]) -> None:
        """Raises StageError for what `run` is sure to refuse, so that it is said before hours of work, not after.

        Asked before anything of a plan runs, and again when its first stage has run; `made` has the folders of the
        artifacts that are there, by kind. Cheap, and never wrong: when in doubt `run` will tell.
        """

    def render(self, report: dict[str, Any], width: int) -> Any:
        """What a run shows in the terminal at its end: a rich renderable for `width` columns, or None for nothing.

        `report` is report.json as it is in the build folder. Only the report stage has something to show.
        """
        return None

    @abstractmethod
    def run(self, job: Job[C]) -> None:
        """Read `job`, write `job.out`. Raises StageError for what the user can mend.

        Any other exception is a bug: its traceback goes to log.txt. An OSError that says the disk is full is reported
        as such.
        """
