"""Render the files of an export."""

from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Files, Form
from stages.delivery.export.sources import SHARED
from stages.support.messages import escape
from stages.support.messages.templates import environment
from stages.support.system.installation import INSTALLATION, REINSTALL_HINT

_TEST_DATA = "shared/test_data.h.j2"


def files_of(form: Form, content: Content) -> Files:
    """Return all files of the export by path. Equal content gives equal bytes."""
    facts = facts_of(form, content)
    files: Files = {f"{form.sources}/{content.name}/{path}": data for path, data in content.sources.items()}
    files |= {f"{form.sources}/{path}": data for path, data in _headers(form, facts).items()}
    files["LICENSE"] = _licence(facts)
    for path, template in {"README.md": "shared/README.md.j2", **form.templates}.items():
        if text := _rendered(form, template, facts).strip():
            files[path.format(name=content.name)] = f"{text}\n".encode()
    return dict(sorted(form.finish(files, content).items()))


def facts_of(form: Form, content: Content) -> dict[str, Any]:
    """Return the variables of the templates, with the rendered `run` and `note` of the form."""
    facts = {
        **content.facts(),
        "header": content.name,
        "sources": form.sources,
        "form": form.title,
        "contract_off": form.contract_off,
        "test_data": next(
            (path.format(name=content.name) for path, template in form.templates.items() if template == _TEST_DATA), ""
        ),
        **form.facts(content),
    }
    form_texts = {"run": form.run, "note": form.note}
    templates = environment(None, "plain")
    return {**facts, **{key: templates.from_string(text).render(facts) for key, text in form_texts.items()}}


def _headers(form: Form, facts: Mapping[str, Any]) -> Files:
    """Return the public header of the export and, if it has several networks, of each of them."""
    networks = facts["networks"]
    headers = {facts["name"]: facts}
    for network in networks if len(networks) > 1 else ():
        path = f"{facts['name']}/{network['name']}"
        headers[network["name"]] = {**facts, "networks": [network], "title": network["title"], "header": path}
    return {
        f"{name}.h": f"{_rendered(form, 'shared/network.h.j2', values).strip()}\n".encode()
        for name, values in headers.items()
    }


def _rendered(form: Form, template: str, facts: Mapping[str, Any]) -> str:
    name = template if template.startswith("shared/") else f"own/{template}"
    text: str = _environment(form).get_template(name).render(facts)
    return text


def _environment(form: Form) -> Any:
    from jinja2 import FileSystemLoader, PrefixLoader

    return environment(PrefixLoader({"shared": FileSystemLoader(SHARED), "own": FileSystemLoader(form.folder)}))


def _licence(facts: Mapping[str, Any]) -> bytes:
    """Return the licence of the code. The licence of the weights is their author's."""
    path = INSTALLATION / "LICENSE"
    if not path.is_file():
        raise FileNotFoundError(2, REINSTALL_HINT, str(path))
    owner = "its author" if len(facts["networks"]) == 1 else "their authors"
    weights = (
        f"The sources of {facts['name']} are written by Firmline and licensed under Apache-2.0, below. The weights of\n"
        f"the {escape.visible(facts['what'])} have the licence of {owner}.\n"
    )
    return f"{weights}\n{path.read_text(encoding='utf-8')}".encode()
