"""MISRA C:2012 messages of cppcheck's add-on on emitted sources, each with its deviation.

`deviations.yaml` has the project's deviations. `python -m stages.delivery.evidence.misra > docs/reference/misra.md`
writes the page about them, and a test compares it.
"""

import fnmatch
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from stages.backends.targets.spec import Target
from stages.support.messages.stage_error import StageError
from stages.support.options.strict_model import StrictModel
from stages.support.system.programs import run_tool

CPPCHECK = "cppcheck"
DEVIATIONS = Path(__file__).with_name("deviations.yaml")
_MESSAGE = re.compile(r"(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): misra-c2012-(?P<rule>[\d.]+)")
# Messages after which cppcheck has not read the rest of a file.
_UNREAD = re.compile(
    r"[^\n]*: (?:syntaxError|preprocessorErrorDirective|internalError|cppcheckError|noValidConfiguration)"
)
_DEFINE = re.compile(r"#define (\w+) (.*)")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_CONDITION = re.compile(r"^\s*#\s*(?:el)?if.*$", re.MULTILINE)


class Deviation(StrictModel):
    """A rule that files may break, and why. A mandatory rule has none.

    files   patterns of paths below src/; `*` also matches `/`
    reason  why the code is as it is, and why it is safe
    """

    rule: str
    category: Literal["required", "advisory"]
    about: str
    files: tuple[str, ...]
    reason: str


@cache
def deviations() -> tuple[Deviation, ...]:
    """Return the project's deviations, sorted by rule."""
    import yaml

    entries = [Deviation.model_validate(entry) for entry in yaml.safe_load(DEVIATIONS.read_text(encoding="utf-8"))]
    return tuple(sorted(entries, key=lambda entry: [*map(int, entry.rule.split("."))]))


def check(src: Path, target: Target) -> dict[str, Any]:
    """Check all C files below `src` as the target's compiler reads them.

    Returns {tool, options, messages: [{file, line, column, rule, deviation: bool}], unread: lines of cppcheck about
    files that it could not read, undeviated: number of messages without a deviation}. Raises StageError.
    """
    if shutil.which(CPPCHECK) is None:
        raise StageError("cppcheck is not installed", hint="apt-get install cppcheck")
    options = ["--addon=misra", "--enable=style", "--std=c11", *_options(src, target)]
    files = sorted(path.relative_to(src).as_posix() for path in src.rglob("*.c"))
    command = [CPPCHECK, *options, "--quiet", "--template={file}:{line}:{column}: {id}", "--template-location=", *files]
    output = run_tool(command, cwd=src).stderr
    messages = [
        {
            "file": match["file"],
            "line": int(match["line"]),
            "column": int(match["column"]),
            "rule": match["rule"],
            "deviation": has_deviation(match["rule"], match["file"]),
        }
        for match in map(_MESSAGE.fullmatch, sorted(set(output.splitlines())))
        if match
    ]
    if "Bailing out from checking" in output or "Failed to execute addon" in output:
        raise StageError(f"cppcheck's add-on misra failed: {output.strip().splitlines()[0]}")
    return {
        "tool": run_tool([CPPCHECK, "--version"]).stdout.strip(),
        "options": options,
        "messages": messages,
        "unread": sorted({match[0] for match in map(_UNREAD.match, output.splitlines()) if match}),
        "undeviated": sum(not message["deviation"] for message in messages),
    }


def has_deviation(rule: str, file: str) -> bool:
    """Return whether a deviation covers a message about `file`, a path below src/."""
    return any(
        entry.rule == rule and any(fnmatch.fnmatchcase(file, pattern) for pattern in entry.files)
        for entry in deviations()
    )


def summary(result: dict[str, Any]) -> str:
    """Return the result of `check` as Markdown: a row per rule, messages without deviation."""
    about = {entry.rule: entry.about for entry in deviations()}
    counts = Counter((message["rule"], message["deviation"]) for message in result["messages"])
    rules = sorted({rule for rule, _ in counts}, key=lambda rule: [*map(int, rule.split("."))])
    rows = [f"| {rule} | {counts[rule, True]} | {counts[rule, False]} | {about.get(rule, '')} |" for rule in rules]
    total, undeviated = len(result["messages"]), result["undeviated"]
    lines = [
        "# MISRA C:2012",
        "",
        f"{total} messages of {result['tool']}, {undeviated} of them without a deviation.",
        "docs/reference/misra.md has the reasons of the deviations.",
        "",
        "| rule | deviated | not deviated | about |",
        "|---|---:|---:|---|",
        *rows,
        "",
        *(f"- {m['file']}:{m['line']}: rule {m['rule']}" for m in result["messages"] if not m["deviation"]),
        *(f"- not read: {line}" for line in result["unread"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _options(src: Path, target: Target) -> list[str]:
    """Return options of cppcheck: the platform, and compiler macros that sources test."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(src.rglob("*")) if path.suffix in (".c", ".h")]
    named = {word for text in texts for line in _CONDITION.findall(text) for word in _WORD.findall(line)}
    command = [target.compiler.command, *target.compiler.flags, "-ffreestanding", "-dM", "-E", "-include", "stdint.h"]
    finished = run_tool([*command, "-x", "c", "/dev/null"])
    if finished.returncode != 0:
        raise StageError(f"{target.compiler.command} does not list its macros: {finished.stderr.strip()[:200]}")
    macros = {match[1]: match[2] for match in map(_DEFINE.fullmatch, finished.stdout.splitlines()) if match}
    bits = 8 * int(macros["__SIZEOF_POINTER__"])
    # GCC's predefined names only: guards of the sources' own headers are not in the list.
    values = {name: _value(name, macros) for name in sorted({*named, "__GNUC__"} & macros.keys())}
    return [f"--platform=unix{bits}", *(f"-D{name}={value}" for name, value in values.items())]


def _value(name: str, macros: dict[str, str]) -> str:
    """Return a macro's text with macros replaced, which cppcheck omits in conditions."""
    return _WORD.sub(lambda word: _value(word[0], macros) if word[0] in macros else word[0], macros[name])


_HEAD = """\
# MISRA C:2012

`doit evidence NAME` checks emitted C and kernels with cppcheck's add-on `misra`. Each message needs a deviation below;
a test checks this for each architecture family.
`stages/delivery/evidence/deviations.yaml` is the source of this page.
`python -m stages.delivery.evidence.misra > docs/reference/misra.md` writes it.

- The add-on checks most decidable rules and some undecidable ones. It does not read assembly (`.S`).
- No mandatory rule has a deviation.
- Paths are below `src/`. `kernels/` has the micro-kernels, written by hand; the other files are generated.
- Some messages are false positives of cppcheck 2.10. Their reason says so.
- Tests compare each kernel with a reference, byte by byte, and every run compares the firmware with LiteRT.
- On the target `host` the code runs under GCC's address and undefined-behaviour sanitizers.

| rule | category | about | files | reason |
|---|---|---|---|---|
"""


def page(entries: Sequence[Deviation] | None = None) -> str:
    """Return docs/reference/misra.md."""
    rows = [
        f"| {entry.rule} | {entry.category} | {entry.about} | {', '.join(f'`{name}`' for name in entry.files)} "
        f"| {' '.join(entry.reason.split())} |\n"
        for entry in (deviations() if entries is None else entries)
    ]
    return f"{_HEAD}{''.join(rows)}\nNext: [Evidence for a release](../how-to/evidence.md)\n"


if __name__ == "__main__":
    print(page(), end="")
