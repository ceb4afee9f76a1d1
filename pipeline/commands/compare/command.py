"""The command `doit compare`."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.commands.command import JSON, Command, command_option, selected_names, variables
from pipeline.commands.compare import formats
from pipeline.commands.compare.difference import Difference, difference
from pipeline.commands.compare.sides import sides
from pipeline.commands.exit_codes import PENDING
from pipeline.errors import PipelineError
from pipeline.runs.workspace import Workspace
from stages.support.messages import escape

_MOST = 20  # layers, unless --all


class Compare(Command):
    """`doit compare`."""

    name = "compare"
    group = "compare"
    names_shown = "A B"
    examples = (
        ("kws_rvp kws_cortex_m4", "two recipes"),
        ("kws_rvp target=rv64-rvp,rv32-rvp", "one recipe on two cores"),
        ("git:HEAD~1:kws_rvp git:HEAD fail_above=1%", "exit code 3 if it has become worse by more than 1 %"),
    )
    keys_help = (
        ("NAME", "the two sides"),
        ("target", "of one recipe: the two targets; of two recipes: the target of both"),
    )
    variables = ("recipe", "target", "board")
    names = "two sides"
    doc_purpose = "compare two runs: instructions, memory, accuracy, layers"
    doc_usage = "A B | NAME target=X,Y [--all] [markdown=FILE] [html=FILE] [fail_above=1%] [--json]"
    doc_description = (
        "A and B: a recipe, NAME@TARGET, a report.json or its folder, git:REV:NAME, or git:REV for the other side's "
        "recipe at that revision. Runs recipes that are not up to date. Cycles of a board are not compared with "
        "instructions."
    )
    cmd_options = (
        command_option("all", "print all layers that differ, not only the first 20"),
        command_option("markdown", "also write a Markdown page; `-` prints it instead of the table", str),
        command_option("html", "also write an HTML page", str),
        JSON,
        command_option("fail-above", "exit with 3 if B needs over N % more instructions, RAM or ROM than A", str),
    )

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        limit = _percent(options["fail-above"])
        first, second = _words(selected_names(named, variables(), "recipe"), variables())
        with Workspace() as workspace:
            project, store = workspace.project, workspace.store.folder
        before, after = sides((first, second), project, store)
        models = [side.report["model"] for side in (before, after)]
        if len({model.get("sha256") for model in models}) > 1:
            both = " and ".join(escape.name(model["name"]) for model in models)
            sys.stderr.write(f"note: the models differ: {both}\n")
        comparison = difference((before.name, after.name), before.report, after.report)
        _print(comparison, options)
        if limit is None:
            return 0
        if not comparison.one_counter:
            ours, theirs = map(escape.name, comparison.counters)
            sys.stderr.write(f"note: A counts {ours}, B {theirs}: fail_above= does not apply to these\n")
        grown = comparison.grown(limit)
        for change in grown:
            by = f"by {change.percent:.2f} %" if change.percent is not None else ""
            sys.stderr.write(
                f"{change.name}: {change.before or 0:,} -> {change.after:,} {by}".rstrip() + ", above the limit\n"
            )
        return PENDING if grown else 0


def _words(named: Sequence[str], values: Mapping[str, str]) -> tuple[str, str]:
    """Return both sides, with the targets of `target=`. Raises PipelineError.

    `a target=x,y` compares `a@x` with `a@y`; `a b target=x` compares `a@x` with `b@x`.
    """
    targets = selected_names((), values, "target", "board")
    words = [*named] * 2 if len(named) == 1 and len(targets) == 2 else [*named]
    if len(words) != 2 or len(targets) > 2:
        what = f"{len(targets)} targets" if len(targets) > 2 else f"{len(named)}"
        raise PipelineError(
            f"doit compare needs two sides, got {what}",
            hint="doit compare kws_rvp kws_cortex_m4, or kws_rvp target=a,b",
        )
    for word in words if targets else ():
        if "@" in word or word.endswith(".json"):
            raise PipelineError(f"{escape.name(word)} has a target; remove target=")
    first, second = targets * (3 - len(targets)) if targets else ("", "")
    return _on(words[0], first), _on(words[1], second)


def _on(word: str, target: str) -> str:
    return f"{word}@{target}" if target else word


def _print(comparison: Difference, options: dict[str, Any]) -> None:
    most = len(comparison.layers) if options["all"] else _MOST
    if options["html"]:
        _write(options["html"], formats.page(comparison))
    if options["markdown"] == "-":
        print(formats.markdown(comparison, most), end="")
        return
    if options["markdown"]:
        _write(options["markdown"], formats.markdown(comparison, most))
    print(formats.as_json(comparison) if options["json"] else "\n".join(formats.text(comparison, most)))


def _write(name: str, content: str) -> None:
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{escape.name(name)} cannot be written: {error.strerror}") from None


def _percent(text: str) -> float | None:
    """Parse fail-above. Raises PipelineError."""
    if not text:
        return None
    if not re.fullmatch(r"\d{1,6}(\.\d{0,6})?\s*%?", text):
        raise PipelineError(f"fail_above={escape.name(text)}: expected a percentage, such as 1%")
    return float(text.rstrip("% "))
