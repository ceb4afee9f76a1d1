"""Keywords: the classes whose detections count, and which labels name them."""

from collections.abc import Iterator, Sequence

from stages.base import StageError
from stages.report.audio.events import Expected
from stages.report.audio.series import Recording, Series
from stages.report.config import DetectionOptions
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean, several

_AT = ("stages", "report", "detection", "keywords")


class Keywords:
    """Keywords of a score, or of decisions.

    names     all classes
    indices   positions of the keywords in `names`
    warnings  sentences on labels that name no class

    Labels of other classes are other words: audio without keyword. Raises StageError for `detection.keywords` that are
    not classes, and for labels if no class is known.
    """

    def __init__(self, series: Series, options: DetectionOptions, classes: Sequence[str]) -> None:
        count = series.classes
        stated = list(classes) if len(classes) == count else []
        used = list(dict.fromkeys(label["name"] for file in series.recordings for label in file.labels))
        self.warnings: list[str] = []
        if count == 1 and not stated:
            self._of_one_class(used, list(options.keywords))
            return
        self.names = stated or [str(index) for index in range(count)]
        known = [name for name in used if name in self.names]
        for name in options.keywords or ([] if known and stated else used) if count else ():
            self._check(name, at=_AT if options.keywords else ())
        self._index = {name: self.names.index(name) for name in options.keywords or (stated if count == 1 else known)}
        self.indices = sorted(set(self._index.values()))
        self._warn([name for name in used if name not in self.names] if count else [])

    def _of_one_class(self, used: Sequence[str], keywords: Sequence[str]) -> None:
        """Set the fields for a single class without a name: all `keywords` are it, else all labels."""
        names = keywords or used
        self.names = [names[0] if keywords or len(used) == 1 else "keyword"]
        self._index, self.indices = dict.fromkeys(names, 0), [0]
        if keywords:
            self._warn([name for name in used if name not in keywords])
        elif len(used) > 1:
            shown = several([escape.quoted(name) for name in used], 3)
            self.warnings.append(
                f"labels of {shown} all count as the keyword; `report: {{detection: {{keywords: [...]}}}}` selects some"
            )

    def expected(self, recording: Recording, seconds: float) -> Iterator[Expected]:
        """Yield the labels of keywords in a recording."""
        for label in recording.labels:
            if label["name"] in self._index:
                whole = label["start"] is None
                start, end = (0.0, seconds) if whole else (float(label["start"]), float(label["end"]))
                yield Expected(self._index[label["name"]], start, end, whole, label["name"])

    def _warn(self, unknown: Sequence[str]) -> None:
        if unknown:
            known = list(self._index) if len(self.names) == 1 else self.names
            labels = several([escape.quoted(name) for name in unknown], 3)
            similar = next(filter(None, (did_you_mean(name, known) for name in unknown)), "")
            self.warnings.append(
                f"labels of {labels} name none of the classes {several([escape.name(name) for name in known], 8)}: "
                f"they count as audio without keyword{similar}"
            )

    def _check(self, name: str, at: tuple[str, ...]) -> None:
        if name not in self.names:
            known = ", ".join(map(escape.name, self.names[:8]))
            raise StageError(
                f"{escape.quoted(name)} is not a class of the network's score: {known}",
                hint="name the classes in `report: {classes: [...]}`, and those to detect in `detection.keywords`",
                at=at,
            )
