"""Texts of `doit`, `doit help` and `doit help COMMAND`."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.commands.arguments import KEYS, NAMES
from stages.support.system.installation import INSTALLATION

# Groups of commands by task, in the order of the list.
GROUPS: Mapping[str, str] = {
    "start": "from a model to firmware",
    "look": "at results, and why they are as they are",
    "compare": "runs, targets and options",
    "ship": "into a product and its continuous integration",
    "extend": "what exists: boards, kernels, operators",
    "maintain": "this machine and the artifact store",
}
_WIDTH = 80


def overview(version: str, recipes: Sequence[str], built_in: int) -> str:
    """Return the text of `doit` without arguments; `recipes` are the project's."""
    name = next((name for name in ("kws_rvp", *recipes) if name in recipes), "")
    total = len(recipes) + built_in
    where = f"{len(recipes)} recipe{'s' * (len(recipes) != 1)}" + (
        f" of this project, {built_in} built in" if built_in else ""
    )
    lines = [
        ("doit list", f"{where}: model and target of each" if total else "no recipes yet"),
        ("doit init FOLDER model=x.tflite", "create a project for a model"),
        ("doit new recipe NAME model=x.tflite", "add a recipe for another model"),
        (f"doit run {name or 'NAME'}", "build, simulate and check firmware"),
        (f"doit run {name or 'NAME'} target=cortex-m4", "the same on another core or board"),
        (f"doit open {name or 'NAME'}", "show the report in a browser"),
        ("doit help", "all commands, by task"),
    ]
    return "\n".join([f"Firmline {version}: trained networks to tested firmware", *_columns(lines)])


def command_list(commands: Mapping[str, Any]) -> str:
    """Return the text of `doit help`: commands by task, each with an example."""
    lines = []
    for group, title in GROUPS.items():
        members = [command for command in commands.values() if command.group == group]
        if members:
            lines += [f"{group.capitalize()}: {title}"]
            lines += _columns((f"doit {command.name} {command.examples[0][0]}".rstrip(), command.doc_purpose)
                              for command in members)  # fmt: skip
            lines += [""]
    lines += [
        "`doit help COMMAND` describes a command. `doit NAME` is short for `doit run NAME`.",
        "Words `key=value` select (recipe=, target=, model=); commas separate several values. `--flags` switch.",
        f"The pages begin at {_shown_path(INSTALLATION / 'docs/index.md')}.",
    ]
    return "\n".join(lines)


def _shown_path(path: Path) -> str:
    """Return a path relative to the current folder if it is below it, else absolute."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def command_help(command: Any) -> str:
    """Return the text of `doit help COMMAND`. A section without content is omitted."""
    usage = f"doit {command.name} {command.doc_usage}".rstrip()
    lines = [f"doit {command.name}: {command.doc_purpose}", "", "Usage:"]
    lines += _wrapped(usage, 2, hanging=4)
    examples = [(f"doit {command.name} {line}".rstrip(), comment) for line, comment in command.examples]
    lines += _section("Examples", examples)
    lines += _section("Arguments", _arguments(command))
    lines += _section("Options", _options(command))
    if command.doc_description:
        lines += ["", *_wrapped(command.doc_description, 0)]
    return "\n".join(lines)


def _arguments(command: Any) -> list[tuple[str, str]]:
    """Return names and keys of a command with their descriptions."""
    rows, own = [], dict(command.keys_help)
    names = own.get("NAME", NAMES.get(command.names, ""))
    if names:
        rows.append((command.names_shown, names))
    rows += [(f"{key}=", own.get(key) or KEYS[key]) for key in (*command.variables, *command.own_variables)]
    valued = [option for option in command.get_options() if is_key(option)]
    return rows + [(f"{name_of_key(option)}=", _description(option)) for option in valued]


def _options(command: Any) -> list[tuple[str, str]]:
    rows = []
    for option in command.get_options():
        if not option.long or is_key(option):
            continue
        value = "" if option.type is bool else "=N" if option.type is int else "=FILE"
        short = f"-{option.short}, " if option.short else ""
        inverse = f", --{option.inverse}" if option.inverse else ""
        rows.append((f"{short}--{option.long}{value}{inverse}", _description(option)))
    return rows


def is_key(option: Any) -> bool:
    """Return whether an option is shown as `key=value`: it takes a value and has no letter."""
    return bool(option.long) and option.type is not bool and not option.short


def name_of_key(option: Any) -> str:
    """Return the key of an option that takes a value: `fail_above`."""
    return str(option.long).replace("-", "_")


def _description(option: Any) -> str:
    text = re.sub(r"\s*\[default: .*?\]", "", option.help)
    choices = ", ".join(option.choices)
    default = option.default if option.default and option.type is not bool and isinstance(option.default, str) else ""
    more = "; ".join(filter(None, (choices, f"default {default}" if default else "")))
    return f"{text} ({more})" if more else text


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["", f"{title}:", *_columns(rows)] if rows else []


def _columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return indented lines of two columns; the second starts a new line after a long first."""
    rows = list(rows)
    width = max((len(first) for first, _ in rows if len(first) <= 36), default=0)
    lines = []
    for first, second in rows:
        text = textwrap.wrap(second, _WIDTH - width - 4, break_on_hyphens=False) or [""]
        if len(first) > width:
            lines.append(f"  {first}")
        else:
            lines.append(f"  {first:{width}}  {text.pop(0)}".rstrip())
        lines += [f"{'':{width + 4}}{line}" for line in text]
    return [line.rstrip() for line in lines]


def _wrapped(text: str, indent: int, hanging: int | None = None) -> list[str]:
    later = " " * (indent if hanging is None else hanging)
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )
