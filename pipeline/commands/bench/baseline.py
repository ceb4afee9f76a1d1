"""`peer=NAME=PATH`: a baseline whose functions are measured beside ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean, several

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.delivery.bench.networks import Network

_SEPARATOR = re.compile(r",(?=[\w./-]+=)")
_CHECKOUT = "PATH must be a checkout of its repository; docs/reference/layers.md links to it"
_ROUNDING = 1  # allowed difference of outputs: a baseline may round differently than LiteRT


@dataclass(frozen=True)
class Baseline:
    """A baseline: name, revision of its header, folder, and supported architecture families."""

    name: str
    revision: str
    folder: Path
    families: tuple[str, ...]

    @property
    def title(self) -> str:
        """The key of its figures; it contains the version."""
        return f"{self.name} (header {self.revision})" if self.revision else self.name

    def figures(
        self, networks: Sequence[Network], target: Target, progress: Callable[..., None], report: Callable[[str], None]
    ) -> dict[str, int]:
        """Measure the baseline. Returns its instructions by network name. Raises StageError.

        Networks that it cannot compute, or computes differently, are reported and skipped.
        """
        from stages.delivery.bench.baselines import BASELINES
        from stages.delivery.bench.baselines.count import count_baseline

        instructions = {}
        counts = count_baseline(
            BASELINES[self.name],
            self.folder,
            networks,
            target,
            progress=progress,
            report=lambda line: report(f"  {self.name} on {target.name}: {line}"),
        )
        for result in counts:
            name = result.network.name
            if result.refused:
                report(f"  {name} on {target.name}: {self.name} {result.refused}; skipped")
                continue
            if result.largest <= _ROUNDING:
                instructions[name] = result.instructions
            if result.differing:
                verdict = "" if name in instructions else "; skipped"
                report(
                    f"  {name} on {target.name}: {self.name} differs from LiteRT in {result.differing:,} of "
                    f"{result.outputs:,} values, by at most {result.largest}{verdict}"
                )
        return instructions


def parse_baseline(text: str) -> Baseline | None:
    """Parse `peer=`; None for ''. Raises PipelineError."""
    if not text:
        return None
    from stages.delivery.bench.baselines import BASELINES

    name, separator, place = text.partition("=")
    if not separator or not place:
        raise PipelineError(f"peer={escape.name(text)}: expected NAME=PATH, such as cmsis-nn=../CMSIS-NN")
    if name not in BASELINES:
        raise _unknown(name, BASELINES)
    folder = checkout(name, place, BASELINES[name].header)
    if not BASELINES[name].files(folder):
        message = f"peer={name}: no {', '.join(BASELINES[name].sources)} in {escape.name(place, 200)}"
        raise PipelineError(message, hint="use a complete checkout")
    return Baseline(name, BASELINES[name].revision_of(folder), folder, BASELINES[name].families)


def parse_checkouts(text: str, headers: Mapping[str, str]) -> dict[str, Path]:
    """Parse `peer=NAME=PATH,NAME=PATH`.

    `headers`: by name, a file that the checkout must have. Raises PipelineError.
    """
    folders = {}
    for part in _SEPARATOR.split(text) if text else ():
        name, _, place = part.partition("=")
        if not place:
            raise PipelineError(f"peer={escape.name(text)}: expected NAME=PATH, such as tinymaix=../TinyMaix")
        if name not in headers:
            raise _unknown(name, headers)
        folders[name] = checkout(name, place, headers[name])
    return folders


def _unknown(name: str, known: Iterable[str]) -> PipelineError:
    names = list(known)
    message = f"peer=: unknown peer '{escape.name(name)}'{did_you_mean(name, names)}"
    return PipelineError(message, hint=f"Known: {several(names, 10)}")


def checkout(name: str, place: str, header: str) -> Path:
    """Return the folder of a checkout. Raises PipelineError if it lacks the file `header`."""
    folder = Path(place).expanduser().resolve()
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise PipelineError(f"peer={name}: {escape.name(place, 200)} {what}", hint=_CHECKOUT)
    if not any(folder.glob(header)):
        below = next((path.parent for path in sorted(folder.glob(f"*/{header}"))), None)
        hint = _CHECKOUT if below is None else f"did you mean {escape.name(str(Path(place) / below.parent.name), 200)}?"
        raise PipelineError(f"peer={name}: no {header} in {escape.name(place, 200)}", hint=hint)
    return folder
