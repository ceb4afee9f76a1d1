"""Content of an export from the artifacts of runs, checked against the form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.delivery.export.content import Content
from stages.delivery.export.form import Form
from stages.delivery.export.network import Network
from stages.delivery.export.sample import sample
from stages.delivery.export.shared_arena import shared_arenas
from stages.delivery.export.sources import sources_of


@dataclass(frozen=True)
class Run:
    """The artifacts of a recipe's run: of emit, simulate and, optionally, verify.

    title   name of the recipe
    caller  whether the caller provides the arenas
    """

    artifacts: Mapping[str, Path]
    title: str
    caller: bool = False


def content_of(
    runs: Sequence[Run],
    target: Target,
    *,
    form: Form,
    version: str,
    name: str = "",
    overrides: str = "",
    share: bool = False,
) -> Content:
    """Read the content from the artifacts of one run, or of several for the same target.

    name   name of the export; '' for the only network's
    share  whether the networks use the same arenas. All of them are then emitted with `arena: caller`

    Raises StageError if the form does not support a network, or the sources cannot be renamed.
    """
    networks = tuple(_network(run) for run in runs)
    name = name or networks[0].name
    titles = ", ".join(network.title for network in networks)
    reason = "" if len(networks) == 1 or form.several else "it takes one network"
    reason = reason or _needs_linker_script(form, target)
    if reason:
        raise _refusal(titles, reason)
    shared = shared_arenas(name, networks) if share else ()
    folders = {network.name: run.artifacts["emit"] / "src" for network, run in zip(networks, runs, strict=True)}
    content = Content(
        name=name,
        target=target,
        networks=networks,
        sources=sources_of(name, networks, folders, target, shared),
        version=version,
        overrides=overrides,
        shared=shared,
    )
    reason = _needs_flags(form, content) or form.why_not(content)
    if reason:
        raise _refusal(titles, reason)
    return content


def _network(run: Run) -> Network:
    model = json.loads((run.artifacts["emit"] / "model.json").read_text())
    verify = run.artifacts.get("verify")
    verdict = json.loads((verify / "verify.json").read_text()) if verify else {}
    skipped = [name for key in ("without_reference", "overflowed", "tied") for name in verdict.get(key, ())]
    return Network(
        name=model["prefix"],
        title=run.title,
        model=model,
        sample=sample(run.artifacts["simulate"], model, skipped),
        verified=str(verdict.get("reference", "")),
        caller=run.caller,
    )


def _refusal(titles: str, reason: str) -> StageError:
    return StageError(f"{titles} cannot be exported in this form: {reason}", hint="`doit export` lists the forms")


def _needs_linker_script(form: Form, target: Target) -> str:
    if target.accelerator is None or form.places_memory:
        return ""
    engine = target.accelerator
    return (
        f"its layers run on {engine.kind}, whose memory {engine.memory} needs a linker script\n"
        f"as=cmake has one; for other forms, export for the core only: target={target.core}"
    )


def _needs_flags(form: Form, content: Content) -> str:
    flagged = next((file for file in content.compiled if file["flags"]), None)
    if flagged is None or form.gives_flags:
        return ""
    return (
        f"{flagged['path']} needs the flags {' '.join(flagged['flags'])}, and the form has no flags per file\n"
        "use cmake, zephyr or esp-idf, or target=host for plain C"
    )
