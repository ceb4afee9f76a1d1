"""Firmline's commands for plain doit, such as `explain`: entry points of pyproject.toml."""

from doit.cmd_base import Command

from firmline.__main__ import main


class TakeOver(Command):  # type: ignore[misc]  # doit has no types
    """doit's class for a command of Firmline: starts Firmline's command line instead of doit's."""

    doc_purpose = "a command of Firmline; see `firmline help`"
    doc_usage = ""
    doc_description = None

    def parse_execute(self, in_args: list[str]) -> int:
        """Run the command line. Never returns."""
        main()
