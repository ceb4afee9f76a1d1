"""The command `firmline`, or `python -m firmline`: the same as `doit` in a project."""

from typing import NoReturn

import firmline  # noqa: F401 - adds pipeline to the path


def main() -> NoReturn:
    """Run this process's command line and exit with the command's exit code."""
    from pipeline.commands.entry import main as start

    start()


if __name__ == "__main__":
    main()
