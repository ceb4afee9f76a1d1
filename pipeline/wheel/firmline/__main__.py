"""The command `firmline`, also as `python -m firmline`: what `doit` is in a project."""

from __future__ import annotations

from typing import NoReturn

import firmline  # noqa: F401 - makes the next one known


def main() -> NoReturn:
    """Run the command line of this process, and end it with the command's exit code."""
    from pipeline.commands.entry import main as start

    start()


if __name__ == "__main__":
    main()
