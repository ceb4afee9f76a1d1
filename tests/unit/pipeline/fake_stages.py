"""Four stages that write text: import -> emit -> compile -> report. Each logs its run in $FAKE_RAN."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pipeline.plugins.registry import Registry
from stages.backends.targets.spec import Target
from stages.base import ActionInputs, Job, Stage, StageConfig, StageError, Tool
from stages.ir.models.sources import ModelSource
from stages.ir.models.spec import FileModel
from stages.support.messages.stage_error import DoesNotFit


class ImportConfig(StageConfig):
    pass


class EmitRule(StageConfig):
    name: str
    layout: Literal["NHWC", "NCHW"] = "NHWC"


class EmitConfig(StageConfig):
    unroll: int = 1
    rules: tuple[EmitRule, ...] = ()
    window: tuple[int, int] = (1, 1)


class CompileConfig(StageConfig):
    """Declares `kind` itself, which is allowed."""

    kind: Literal["compile"] = "compile"
    opt: str = "O1"
    flags: tuple[str, ...] = ()


class ReportConfig(StageConfig):
    pass


class Fake(Stage[Any]):
    code: ClassVar[tuple[str, ...]] = ("code/report.py",)

    def inputs(self, config: StageConfig, model: ModelSource, target: Target) -> ActionInputs:
        return ActionInputs(sources=self.code)

    def note(self) -> None:
        with Path(os.environ["FAKE_RAN"]).open("a") as stream:
            stream.write(self.kind + "\n")


class FakeImport(Fake):
    """Reads the model. FAKE_MOOD=own changes its output, as another machine would."""

    kind = "import"
    config = ImportConfig

    def inputs(self, config: StageConfig, model: ModelSource, target: Target) -> ActionInputs:
        return ActionInputs(
            files=lambda root: {"model": root / model.file} if isinstance(model, FileModel) else {},
            sources=("code/import.py",),
            model_entry=model.model_dump(mode="json"),
        )

    def run(self, job: Job[Any]) -> None:
        self.note()
        job.progress("reads", 0.5)
        job.log("import says hello")
        text = job.files["model"].read_text() if job.files else "built\n"
        if text == "broken\n":
            raise StageError("model.txt is corrupt", hint="get another")
        if os.environ.get("FAKE_MOOD") == "own":
            text = f"its own {text}"
        (job.out / "module.json").write_text(text)


class FakeEmit(Fake):
    """Writes sources. Sleeps or crashes depending on FAKE_MOOD."""

    kind = "emit"
    config: ClassVar[type[StageConfig]] = EmitConfig
    consumes = ("import",)

    def inputs(self, config: StageConfig, model: ModelSource, target: Target) -> ActionInputs:
        return ActionInputs(sources=("code/emit*.py",), target_fields=("word_bits",))

    def run(self, job: Job[Any]) -> None:
        self.note()
        if job.config.unroll == 13:
            raise DoesNotFit("13 times is unlucky", hint="take 12", at=("stages", "emit", "unroll"))
        for number, rule in enumerate(job.config.rules):
            if rule.name == "nobody":
                raise StageError("no layer\nis called so", at=("stages", "emit", "rules", number, "name"))
        (job.out / "src").mkdir()
        module = (job.inputs["import"] / "module.json").read_text()
        (job.out / "src" / "model.c").write_text(f"{job.config.unroll} {module}")
        mood = os.environ.get("FAKE_MOOD", "")
        if mood == "hang":
            time.sleep(60)
        if mood == "slow":
            time.sleep(0.4)
        if mood == "crash":
            raise KeyError("bug in emit")
        (job.out / "src" / "model.h").write_text("// header\n")


class FakeCompile(Fake):
    """Runs the tool."""

    kind = "compile"
    config = CompileConfig
    consumes = ("emit",)

    def inputs(self, config: StageConfig, model: ModelSource, target: Target) -> ActionInputs:
        compiler = Tool("fakecc", command="fakecc", minimum="12", install="apt-get install fakecc")
        return ActionInputs(tools=(compiler,), sources=("code/compile.py",))

    def preflight(
        self, config: Any, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Refuses the flag -never."""
        if "-never" in config.flags:
            raise StageError("-never is never taken", at=("stages", "compile", "flags"))

    def run(self, job: Job[Any]) -> None:
        self.note()
        done = subprocess.run([job.tools["fakecc"].path], capture_output=True, text=True, check=True)
        job.log(done.stdout)
        source = (job.inputs["emit"] / "src" / "model.c").read_text()
        (job.out / "firmware.elf").write_text(f"{job.config.opt} {source}")


class FakeReport(Fake):
    """Writes the report."""

    kind = "report"
    config = ReportConfig
    consumes = ("import", "compile")

    def inputs(self, config: StageConfig, model: ModelSource, target: Target) -> ActionInputs:
        return ActionInputs(sources=self.code, target_fields=("name",))

    def preflight(
        self, config: Any, model: ModelSource, target: Target, root: Path, artifacts: Mapping[str, Path]
    ) -> None:
        """Refuses a model that is huge on two targets."""
        huge = "import" in artifacts and (artifacts["import"] / "module.json").read_text() == "huge\n"
        if huge and target.name in ("rv32-rvp", "rv64-scalar"):
            raise StageError(f"the model does not fit {target.name}")

    def run(self, job: Job[Any]) -> None:
        self.note()
        (job.out / "report.json").write_text(json.dumps({"target": job.target.name, "instructions": {"total": 42}}))
        (job.out / "report.md").write_text("42 instructions\n")

    def render(self, report: dict[str, Any], width: int) -> Any:
        return f"{report['instructions']['total']} instructions, {len(report['stages'])} stages"


class StripConfig(StageConfig):
    word: str = "stripped"


class Strip(Fake):
    """Rewrites the sources, for all stages after it."""

    kind = "strip"
    config = StripConfig
    consumes = ("emit",)
    provides = "emit"

    def run(self, job: Job[Any]) -> None:
        self.note()
        if job.config.word == "never":
            raise StageError("never is no word", at=("stages", "strip", "word"))
        (job.out / "src").mkdir()
        text = (job.inputs["emit"] / "src/model.c").read_text()
        (job.out / "src" / "model.c").write_text(f"{job.config.word} {text}")


class OtherConfig(StageConfig):
    quality: int


class OtherEmit(Fake):
    """A replacement of emit."""

    kind = "other_emit"
    config = OtherConfig
    consumes = ("import",)
    provides = "emit"

    def run(self, job: Job[Any]) -> None:
        self.note()
        if job.config.quality < 0:
            raise StageError("worse than nothing", at=("stages", "other_emit", "quality"))
        (job.out / "src").mkdir()
        (job.out / "src" / "model.c").write_text(f"other {job.config.quality}\n")


def fake_registry(*more: Stage[Any]) -> Registry:
    """Return a registry with the default chain and `more` stages."""
    return Registry([FakeImport(), FakeEmit(), FakeCompile(), FakeReport()], more)


if __name__ == "__main__":
    # Entry point for tests that kill a run or start two runs.
    from pipeline.api import run_recipe

    root = Path(sys.argv[1])
    result = run_recipe("demo", root=root, registry=fake_registry(), store=root / "store")
    print(json.dumps({stage.kind: stage.cached for stage in result.stages}))
