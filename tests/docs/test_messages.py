"""The FAQ of error messages quotes what Firmline says, and names commands and pages that there are."""

import re

import pytest

from stages.support.system.installation import INSTALLATION as ROOT

PAGE = (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8")
# Said by the shell.
_NOT_OURS = "doit: command not found"
_JOINED = re.compile(r'"\s*\n\s*f?"')


def quoted() -> list[str]:
    """The messages of the tables' first columns."""
    rows = re.findall(r"^\| (`.*?`) \| ", PAGE.partition("## What must be installed?")[2], re.MULTILINE)
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row) if message != _NOT_OURS]


@pytest.fixture(scope="module")
def code() -> str:
    """All that may print, its texts in one piece."""
    files = [ROOT / "bootstrap", *(path for folder in ("pipeline", "stages") for path in (ROOT / folder).rglob("*.py"))]
    return _JOINED.sub("", "\n".join(path.read_text(encoding="utf-8") for path in files))


def test_what_is_quoted_is_stated(code: str) -> None:
    messages = quoted()
    assert len(messages) > 40
    for message in messages:
        for part in message.split("…"):
            assert part.removeprefix("warning: ").strip("' :") in code, message
