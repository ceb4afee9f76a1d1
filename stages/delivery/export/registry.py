"""Find export forms: packages with FORM in delivery/export/forms, and plug-ins."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from stages.base import StageError
from stages.delivery.export.form import Form
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean


def names() -> list[str]:
    """Return the names of the built-in forms, sorted."""
    return sorted(path.parent.name.replace("_", "-") for path in Path(__file__).parent.glob("forms/*/__init__.py"))


def form_of(name: str, outside: Mapping[str, Form] | None = None) -> Form:
    """Return the form with this name; `outside` are plug-ins.

    Raises StageError with the known names.
    """
    outside = outside or {}
    if name in outside:
        return outside[name]
    if name not in names():
        known = sorted({*names(), *outside})
        message = f"unknown export form '{escape.name(name)}'{did_you_mean(name, known)}"
        raise StageError(message, hint=f"known forms: {', '.join(known)}")
    form: Form = import_module(f"stages.delivery.export.forms.{name.replace('-', '_')}").FORM
    return form
