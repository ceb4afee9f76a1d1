"""Finds forms: packages of `stages/delivery/export/forms` with FORM, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from stages.base import StageError
from stages.delivery.export.form import Form
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean


def names() -> list[str]:
    """Names of Firmline's forms, sorted."""
    return sorted(path.parent.name.replace("_", "-") for path in Path(__file__).parent.glob("forms/*/__init__.py"))


def form_of(name: str, outside: Mapping[str, Form] | None = None) -> Form:
    """The form of that name; `outside` are those of plug-ins. Raises StageError with the names there are."""
    outside = outside or {}
    if name in outside:
        return outside[name]
    if name not in names():
        known = sorted({*names(), *outside})
        message = f"no form of export is called '{escape.name(name)}'{did_you_mean(name, known)}"
        raise StageError(message, hint=f"there are: {', '.join(known)}")
    found: Form = import_module(f"stages.delivery.export.forms.{name.replace('-', '_')}").FORM
    return found
