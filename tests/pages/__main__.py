"""Writes the figures of pages anew, of today's kernels; texts stay:

    python -m tests.pages [--check] [accelerator] [fit] [ne16] [onnx] [quantization] [timing]

of a clone, all six by default. With --check it writes nothing, but prints what would change, for which its exit code
is 1. What the store has is looked up.
"""

import argparse
import difflib
import sys

from tests.pages import accelerator, fit, ne16, onnx, quantization, timing

PAGES = {
    "accelerator": accelerator,
    "fit": fit,
    "ne16": ne16,
    "onnx": onnx,
    "quantization": quantization,
    "timing": timing,
}


def main() -> int:
    """Raises PipelineError for a recipe that cannot be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="print what would change, and write nothing")
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], metavar="page", help=", ".join(PAGES))
    given = parser.parse_args()
    stale = 0
    for name in given.pages or PAGES:
        path = PAGES[name].PAGE
        before = path.read_text(encoding="utf-8")
        after = PAGES[name].renewed(before)
        if not given.check:
            path.write_text(after, encoding="utf-8")
        elif after != before:
            stale += 1
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path.name, "today", n=0, lineterm="")
            print("\n".join(lines))
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
