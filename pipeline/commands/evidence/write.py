"""Run a recipe and write its evidence folder."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.artifacts.digest import digest_of, hash_file
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_debian, install_group
from pipeline.project import Project
from pipeline.runs.publish import EVIDENCE, HTML, ON_BOARD, REPORT
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from stages.base import Job
from stages.compile.firmware import compile_firmware
from stages.delivery.evidence import misra
from stages.delivery.evidence.instructions import spread
from stages.delivery.evidence.libraries import libraries
from stages.delivery.evidence.provenance import sha256, statement
from stages.delivery.evidence.release import BuiltStage, Release
from stages.delivery.evidence.sbom import sbom
from stages.delivery.evidence.stack import FAMILIES, STACK_USAGE, Usage, stack_bound
from stages.delivery.evidence.worst_case import DECODERS, Bound, worst_cases
from stages.report.board import counted, ran_line
from stages.simulate.simulate import simulated
from stages.support.system.atomic_write import write_atomically
from stages.support.system.scratch import temporary_folder

INDEX = f"{EVIDENCE}.json"
PROVENANCE, SBOM = "provenance.intoto.json", "sbom.cdx.json"
_NEEDED = ("import", "emit", "compile", "simulate", "verify", "report")


def write_evidence(
    recipe: str, overrides: Mapping[str, str], *, project: Project, display: Any = None, store: Path | None = None
) -> dict[str, Any]:
    """Run the recipe and write `evidence/` in its build folder.

    Returns the content of evidence.json with `folder`. Raises PipelineError, StageError.
    """
    with Workspace(root=project, store=store, install=install_group) as workspace:
        plan = workspace.plan(recipe, overrides)
        missing = [kind for kind in _NEEDED if kind not in {action.kind for action in plan}]
        if missing:
            raise PipelineError(f"recipe '{plan.recipe}' has no stage {missing[0]}, which evidence needs")
        session = Session(workspace, plan, display, "")
        try:
            for action in plan:
                if not session.is_done(action):
                    session.run(action)
            session.publish()
            content = _write(session, project)
            session.publish()  # the report lists the evidence
        finally:
            session.close()
    return {**content, "folder": project.display_path(session.folder / EVIDENCE)}


def _write(session: Session, project: Project) -> dict[str, Any]:
    folder = session.folder / EVIDENCE
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    release = _release(session, project)
    rows = [*_checks(session, release, folder)]
    _put(folder / SBOM, sbom(release))
    _put(folder / PROVENANCE, statement(release))
    rows += [
        _row("bill of materials", SBOM, "CycloneDX 1.6: network, data, sources, libraries, tools"),
        _row("provenance", PROVENANCE, "in-toto statement, SLSA provenance v1: from the model to firmware.elf"),
    ]
    content = {
        "format": 1,
        "recipe": release.recipe,
        "target": release.target,
        "changes": list(release.changes),
        "firmware": release.outputs["firmware.elf"],
        "holds": all(row["holds"] for row in rows),
        "evidence": rows,
        "files": {path.name: hash_file(path) for path in sorted(folder.iterdir())},
    }
    _put(folder / INDEX, content)
    return content


def _checks(session: Session, release: Release, folder: Path) -> Iterator[dict[str, Any]]:
    """Write the results of the checks, and yield their rows of evidence.json."""
    yield _misra(session, folder)
    yield _rebuild(session, release, folder)
    yield _stack(session, release, folder)
    yield _instructions(session, release, folder)
    yield from _on_board(session, folder)


def _misra(session: Session, folder: Path) -> dict[str, Any]:
    if shutil.which(misra.CPPCHECK) is None and not install_debian([misra.CPPCHECK]):
        return _row("MISRA C:2012", "", "not checked: cppcheck is missing, apt-get install cppcheck", holds=False)
    result = misra.check(session.folders["emit"] / "src", session.plan["emit"].target)
    _put(folder / "misra.json", result)
    write_atomically(folder / "misra.md", misra.summary(result))
    total, undeviated, unread = len(result["messages"]), result["undeviated"], len(result["unread"])
    text = f"{total} messages, {undeviated or 'none'} without a deviation"
    text += f", {unread} files not read" if unread else ""
    return _row("MISRA C:2012", "misra.md", text, holds=not undeviated and not unread)


@contextmanager
def another_day() -> Iterator[None]:
    """Let compilers date `__DATE__` and `__TIME__` to 1970, unless SOURCE_DATE_EPOCH is set."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        yield
        return
    os.environ["SOURCE_DATE_EPOCH"] = "1"
    try:
        yield
    finally:
        del os.environ["SOURCE_DATE_EPOCH"]


def _rebuild(session: Session, release: Release, folder: Path) -> dict[str, Any]:
    """Emit and compile again in another folder, on another day, without the store, and compare."""
    with temporary_folder("rebuild") as build, another_day():
        inputs = dict(session.folders)
        for kind in ("emit", "compile"):
            action = session.plan[kind]
            out = build / kind
            out.mkdir()
            action.stage.run(
                Job(
                    config=action.config,
                    model=action.model,
                    target=action.target,
                    inputs={role: inputs[name] for role, name in action.link.inputs.items()},
                    out=out,
                    files=action.files,
                    tools=action.tools,
                )
            )
            inputs[kind] = out
        rebuilt = {"firmware.elf": hash_file(build / "compile/firmware.elf"), **_tree(build / "emit/src")}
    sanitized = any(flag.startswith("-fsanitize") for flag in session.plan["compile"].target.compiler.flags)
    if sanitized:  # GCC's sanitizers put paths of sources into the program
        rebuilt["firmware.elf"] = release.outputs["firmware.elf"]
    different = sorted(
        name for name in rebuilt.keys() | release.outputs.keys() if rebuilt.get(name) != release.outputs.get(name)
    )
    _put(folder / "rebuild.json", {"files": rebuilt, "different": different})
    text = f"{len(rebuilt)} files, among them firmware.elf, have the same bytes"
    text = (
        f"{len(rebuilt) - 1} sources have the same bytes; sanitizers put paths into firmware.elf" if sanitized else text
    )
    text = f"different: {', '.join(different[:5])}" if different else text
    return _row("rebuild", "rebuild.json", text, holds=not different)


def _stack(session: Session, release: Release, folder: Path) -> dict[str, Any]:
    action = session.plan["compile"]
    if action.target.family not in FAMILIES:
        return _row("stack", "", f"no static bound for programs of the family {action.target.family}")
    config: Any = action.config
    usage, prefix = Usage(), release.network["prefix"]
    with temporary_folder("stack") as build:
        config = config.model_copy(update={"flags": (*config.flags, STACK_USAGE)})
        compile_firmware(
            session.folders["emit"] / "src", release.network, action.target, build, config=config, inspect=usage.read
        )
        result = stack_bound(
            build / "firmware.elf",
            action.target,
            usage,
            (f"{prefix}_run", f"{prefix}_push_rows", f"{prefix}_init", "main"),
            f"{prefix}_layer_done",
            release.report["memory"]["stack_bytes"],
        )
    _put(folder / "stack.json", result)
    calls = (f"{prefix}_run", f"{prefix}_push_rows")
    run = next((row for row in result["roots"] if row["root"] in calls), None)
    if run is None:
        return _row("stack", "stack.json", f"the firmware has neither {' nor '.join(calls)}", holds=False)
    unbounded = [*run["dynamic"], *run["recursive"]]
    text = f"{run['root']}: at most {run['bytes']:,} bytes"
    text += f", without {', '.join(unbounded)}, which have no bound" if unbounded else ""
    text += f"; {len(run['pointer_calls'])} functions call through pointers" if run["pointer_calls"] else ""
    if result["holds"] is not None:
        main = next(row["bytes"] for row in result["roots"] if row["root"] == "main")
        text += f". Test program: at most {main:,}, measured {result['measured']:,}"
    return _row("stack", "stack.json", text, holds=not unbounded and result["holds"] is not False)


def _instructions(session: Session, release: Release, folder: Path) -> dict[str, Any]:
    counts = json.loads((session.folders["simulate"] / "counts.json").read_text())
    bounds = _instruction_bounds(session, release)
    result = spread(counts, release.report["layers"], bounds)
    if not result["total"]["most"]:
        return _row("instructions", "", "not counted on this target")
    _put(folder / "instructions.json", result)
    total, varying, unbounded = result["total"], result["varying"], result["unbounded"]
    unit = counted(release.report)
    is_instructions = unit == "instructions"
    text = f"{total['least']:,} to {total['most']:,}{'' if is_instructions else f' {unit}'}"
    text += f" over {result['inferences']} inferences"
    if total["bound"] is not None:
        text += f", at most {total['bound']:,} for any input"
    text += f"; no bound for layers {', '.join(map(str, unbounded))}, whose loops depend on data" if unbounded else ""
    text += f"; layers that depend on data: {', '.join(map(str, varying)) or 'none'}" if is_instructions else ""
    return _row("instructions", "instructions.json", text, holds=result["holds"])


def _instruction_bounds(session: Session, release: Release) -> list[Bound]:
    """Return the bounds of the layers and of the code after them, if instructions are counted."""
    action, network = session.plan["simulate"], release.network
    config: Any = action.config
    is_counted = action.target.simulator.kind in ("spike", "qemu") and action.target.family in DECODERS
    if not is_counted or action.target.accelerator is not None or config.run_on is not None:
        return []
    layers, calls = len(network["layers"]), [call[0] for call in network.get("calls", ())]
    return worst_cases(
        simulated(session.folders["compile"], action.target),
        action.target.in_simulator,
        session.folders["simulate"] / "inputs.bin",
        layers,
        calls or range(layers),
        timeout=config.timeout,
    )


def _on_board(session: Session, folder: Path) -> Iterator[dict[str, Any]]:
    """Save the report of the last run on a board, if it had the same sources. Yields its row."""
    source = session.folder / ON_BOARD
    try:
        report = json.loads((source / REPORT).read_text(encoding="utf-8"))
        keys = {stage["kind"]: stage["key"] for stage in report["stages"]}
        differing, values = report["verify"]["mismatches"], report["verify"]["outputs_checked"]
        total = f"{report['instructions']['total'] or 0:,} {counted(report)}"
        text = f"{ran_line(report['ran'])}: {total}, {differing} mismatches in {values:,} values"
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        yield _row("run on a board", "", f"not saved: {ON_BOARD}/{REPORT} is damaged, run again with run_on=")
        return
    if keys.get("emit") != session.artifact("emit").key:
        yield _row("run on a board", "", f"not saved: sources changed since the run in {ON_BOARD}/")
        return
    for path in (source / REPORT, source / HTML):
        if path.is_file():
            write_atomically(folder / f"{ON_BOARD}{path.suffix}", path.read_bytes())
    yield _row("run on a board", f"{ON_BOARD}.html", text, holds=not differing)


def _release(session: Session, project: Project) -> Release:
    """Collect the content of the documents. Raises PipelineError."""
    plan, folders = session.plan, session.folders
    if plan.loaded is None or session.report is None:
        raise PipelineError(f"recipe '{plan.recipe}' has no report, which evidence needs")
    documents = [
        (f"recipe {document.name}", project.root / document.name)
        for document in plan.loaded.sources.documents
        if document.is_file and (project.root / document.name).is_file()  # not one of the installation
    ]
    stages, files = [], documents
    for action in plan:
        artifact = session.artifact(action.kind)
        ingredients = artifact.manifest["ingredients"]
        stages.append(
            BuiltStage(
                action.kind,
                artifact.key,
                artifact.content,
                json.loads(json.dumps(ingredients["parameters"], sort_keys=True)),
                digest_of(ingredients["code"]),
                ingredients["tools"],
            )
        )
        kind = "model" if not action.link.inputs else "data"
        files += [(f"{kind} {name}", path) for name, path in sorted(action.files.items())]
    programs = {
        name: hash_file(Path(tool.path).resolve())
        for action in plan
        for name, tool in action.tools.items()
        if tool.path and Path(tool.path).is_file()
    }
    versions = {name: tool.version for name, tool in plan["compile"].tools.items()}
    firmware = {"firmware.elf": hash_file(folders["compile"] / "firmware.elf")}
    return Release(
        plan.recipe,
        plan.target,
        plan.changes,
        str(pyproject_table("project")["version"]),
        tuple(stages),
        firmware | _tree(folders["emit"] / "src"),
        tuple((name, os.path.relpath(path, project.root), hash_file(path)) for name, path in dict.fromkeys(files)),
        programs,
        json.loads((folders["import"] / "import.json").read_text()),
        json.loads((folders["emit"] / "model.json").read_text()),
        session.report,
        tuple(libraries((folders["compile"] / "firmware.map").read_text(errors="replace"), versions)),
    )


def _tree(src: Path) -> dict[str, str]:
    """Return the digests of the files below src/, by path from its parent."""
    return {
        f"src/{path.relative_to(src).as_posix()}": sha256(path) for path in sorted(src.rglob("*")) if path.is_file()
    }


def _row(about: str, file: str, result: str, *, holds: bool = True) -> dict[str, Any]:
    return {"about": about, "file": file, "result": result, "holds": holds}


def _put(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=1) + "\n")
