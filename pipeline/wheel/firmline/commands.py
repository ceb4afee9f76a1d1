"""The commands that doit itself does not have, such as `explain`: doit finds them by entry points (pyproject.toml)."""

from __future__ import annotations

from doit.cmd_base import Command

from firmline.__main__ import main


class TakeOver(Command):  # type: ignore[misc]  # doit has no types
    """doit makes one when such a command is given: Firmline's command line runs instead of doit's."""

    doc_purpose = "Firmline's; `firmline help` says more"
    doc_usage = ""
    doc_description = None

    def parse_execute(self, in_args: list[str]) -> int:
        """Never returns."""
        main()
