"""`python -m tests.scaling`: what docs/distributed.md says of many workers.

With --measure RECIPE it measures first: what a stage costs beside its own time, by runs of the recipe on a cluster of
one worker here, and the stages of all reports below --reports. Without, it writes the page from docs/distributed.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipeline.errors import PipelineError
from tests.scaling.page import FIGURES, PAGE, figures, read_figures, with_figures, write_figures
from tests.scaling.simulation import read_reports


def main(words: list[str] | None = None, page: Path = PAGE, kept: Path = FIGURES) -> int:
    """Write the page. Returns the exit code."""
    parser = argparse.ArgumentParser("python -m tests.scaling", description="How far more workers help.")
    parser.add_argument("--measure", metavar="RECIPE", default="", help="measure anew, by runs of this recipe")
    parser.add_argument("--reports", type=Path, default=Path("build"), help="folder with report.json files [build]")
    given = parser.parse_args(words)
    try:
        if given.measure:
            from tests.scaling.measured import artifact_sizes, measured_costs

            recipes = list(read_reports(given.reports, artifact_sizes))
            if not recipes:
                raise PipelineError(f"no report.json below {given.reports}")
            write_figures(measured_costs(given.measure), recipes, kept)
        page.write_text(with_figures(page.read_text(), figures(*read_figures(kept))))
    except PipelineError as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
