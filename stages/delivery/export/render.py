"""Makes the files of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.delivery.export.form import SHARED, Files
from stages.support.messages import escape
from stages.support.messages.templates import c, environment
from stages.support.system.installation import INSTALLATION, WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.delivery.export.content import Content
    from stages.delivery.export.form import Form

_HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* {title}, written by Firmline for {target}: the functions are in {name}/model.h. */
#include "{name}/model.h"
"""


def files_of(form: Form, content: Content) -> Files:
    """All files of the export by their paths, the same bytes whenever the content is the same."""
    facts = facts_of(form, content)
    found: Files = {f"{form.sources}/{content.name}/{path}": data for path, data in content.sources.items()}
    found[f"{form.sources}/{content.name}.h"] = _HEADER.format(
        **{key: c(facts[key]) for key in ("title", "target", "name")}
    ).encode()
    found["LICENSE"] = _licence(facts)
    for path, template in {"README.md": "shared/README.md.j2", **form.templates}.items():
        if text := _rendered(form, template, facts).strip():
            found[path.format(name=content.name)] = f"{text}\n".encode()
    return dict(sorted(form.finish(found, content).items()))


def facts_of(form: Form, content: Content) -> dict[str, Any]:
    """What templates read; `run` and `note` are the form's, made of the others."""
    facts = {
        **content.facts(),
        "sources": form.sources,
        "form": form.title,
        "contract_off": form.contract_off,
        **form.facts(content),
    }
    own = {"run": form.run, "note": form.note}
    made = environment(None, "plain")
    return {**facts, **{key: made.from_string(text).render(facts) for key, text in own.items()}}


def _rendered(form: Form, template: str, facts: Mapping[str, Any]) -> str:
    name = template if template.startswith("shared/") else f"own/{template}"
    text: str = _environment(form).get_template(name).render(facts)
    return text


def _environment(form: Form) -> Any:
    from jinja2 import FileSystemLoader, PrefixLoader

    return environment(PrefixLoader({"shared": FileSystemLoader(SHARED), "own": FileSystemLoader(form.folder)}))


def _licence(facts: Mapping[str, Any]) -> bytes:
    """Of the code; the network's own is not Firmline's to say."""
    path = INSTALLATION / "LICENSE"
    if not path.is_file():
        raise FileNotFoundError(2, WHOLE, str(path))
    weights = (
        f"The sources of {facts['name']} are written by Firmline and licensed under Apache-2.0, below. The numbers of\n"
        f"the network {escape.visible(facts['network'])} (weights) are its author's, and so is their licence.\n"
    )
    return f"{weights}\n{path.read_text(encoding='utf-8')}".encode()
