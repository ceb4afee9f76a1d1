"""The section of report.html about one run: how to repeat it, stages with keys, tools."""

from collections.abc import Mapping, Sequence
from html import escape as html
from typing import Any

from stages.report.html import RUN, command_mark
from stages.report.html.terms import Terms
from stages.support.messages import escape


def add_run_section(page: str, command: str, additions: Mapping[str, Any]) -> str:
    """Return the page with the section in place of its mark; `additions` as in report.json."""
    stages = "".join(
        f"<tr><td>{_text(stage['kind'])}</td><td>{_how(stage)}</td>"
        f"<td>{stage['seconds']:.1f} s</td><td><code>{_text(stage['key'])}</code></td></tr>\n"
        for stage in additions["stages"]
    )
    tools = "".join(f"<dt>{_text(name)}</dt><dd>{_text(version)}</dd>" for name, version in additions["tools"].items())
    terms = Terms()
    section = (
        f"<section><h2>How to repeat</h2><pre>{_text(command)}</pre>\n"
        f"<p>The same {terms.hint('action key', 'action keys')} give the same bytes.</p>\n"
        f"<div class='wide'><table><tbody>\n{stages}</tbody></table></div>\n"
        f"<h2>{terms.hint('toolchain', 'Tools')}</h2><dl>{tools}</dl></section>"
    )
    return page.replace(RUN, _evidence(additions.get("evidence", ())) + section, 1)


def _evidence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the section about the files of `doit evidence`, '' without evidence."""
    if not rows:
        return ""
    lines = "".join(
        f"<tr><td>{_link(row)}</td><td>{'' if row['holds'] else '<b>open: </b>'}{_text(row['result'])}</td></tr>\n"
        for row in rows
    )
    return f"<section><h2>Evidence</h2>\n<div class='wide'><table><tbody>\n{lines}</tbody></table></div></section>\n"


def _link(row: Mapping[str, Any]) -> str:
    about = _text(row["about"])
    return f"<a href='evidence/{_text(row['file'])}'>{about}</a>" if row["file"] else about


def add_commands(page: str, advice: Sequence[Mapping[str, Any]]) -> str:
    """Return the page (HTML or Markdown) with the advice's commands in place of their marks."""
    for number, entry in enumerate(advice):
        command = f"<code>{_text(entry['command'])}</code>" if entry["command"] else ""
        page = page.replace(command_mark(number), command, 1)
    return page


def _how(stage: Mapping[str, Any]) -> str:
    return ("from the remote store" if stage.get("remote") else "cached") if stage["cached"] else "ran"


def _text(value: Any) -> str:
    return html(escape.line(str(value)))
