"""Picture of recordings over time, for light and dark pages.

yes one.wav, 1 s                   yes detected after 0.31 s
samples    ..:|||:...:||||||:..    labels are shaded
features   [ heat map, low channels below ]
score      _____/^^^^\\____________  a line for each class, the threshold dashed, a mark at each detection
           0        0.5        1 s
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any
from xml.sax.saxutils import escape as xml

import numpy as np
import numpy.typing as npt

from stages.report.audio.events import FALSE, HIT
from stages.report.audio.series import Recording, Series
from stages.report.html.samples import png
from stages.support.messages import escape

MOST_FILES = 8
_WIDTH, _LEFT, _RIGHT = 1000, 92, 985
_HEAD, _WAVE, _HEAT, _SCORE, _AXIS, _GAP = 27, 40, 84, 64, 34, 6
_COLUMNS = _RIGHT - _LEFT
_MOST_CHANNELS = 128
_TICKS = 8  # at most
_NAME = 40  # letters
# From dark blue by green to yellow: legible for the colour-blind, and in grey.
_HEAT_COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
_LINES = 6  # colours of scores

# As in ranges_svg: inside a page its colours, as a file the fallbacks.
_LIGHT = {
    "ink": "#1f2328",
    "quiet": "#59636e",
    "line": "#d1d9e0",
    "bar": "#f3c98b",
    "good": "#1a7f37",
    "bad": "#c62828",
}
_DARK = {"ink": "#e6edf3", "quiet": "#9aa4ae", "line": "#343b43", "bar": "#7a4d0f", "good": "#56d364", "bad": "#ff7b72"}
_SCORES = (
    ("#0b5cad", "#79b8ff"), ("#b35900", "#f0a35e"), ("#1a7f37", "#56d364"),
    ("#8250df", "#c297ff"), ("#a0174f", "#ff8ab5"), ("#59636e", "#9aa4ae"),
)  # fmt: skip


def audio_svg(series: Series, audio: Mapping[str, Any]) -> str:
    """Return the SVG of up to MOST_FILES recordings, those with errors first, or ''."""
    shown = _shown(audio["files"])
    if not shown:
        return ""
    wave = max(_loudest(series.samples(series.recordings[number])) for number in shown) or 1.0
    frames = {number: series.frames(series.recordings[number]) for number in shown}
    values = [array for array in frames.values() if array is not None]
    heat = (
        (min(float(array.min()) for array in values), max(float(array.max()) for array in values)) if values else None
    )
    body, top = list(_legend(audio)), 24 if len(audio["classes"]) > 1 else 4
    if len(shown) < len(audio["files"]):
        text = f"{len(shown)} of {len(audio['files']):,} files, those with errors first"
        body.append(f'<text class="quiet" x="{_RIGHT}" y="14" text-anchor="end">{text}</text>')
        top = 24
    names = _short_names([file["name"] for file in audio["files"]])
    for number in shown:
        panel = _Panel(series, series.recordings[number], audio, {**audio["files"][number], "name": names[number]}, top)
        body += panel.lines(wave, frames[number], heat)
        top = panel.bottom
    size = f'width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="audio" role="img" aria-label="recordings over time" {size}>'
    return "\n".join([head, f"<style>{_style()}</style>", *body, "</svg>\n"])


def _shown(files: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the files that are drawn, in order."""
    wrong = [
        any(label["detected"] is None for label in file["labels"])
        or any(detection["verdict"] not in ("", HIT) for detection in file["detections"])
        for file in files
    ]
    ranked = sorted(range(len(files)), key=lambda number: (not wrong[number], number))
    return sorted(ranked[:MOST_FILES])


def _short_names(names: Sequence[str]) -> list[str]:
    """Return the paths below the folder that all have in common."""
    parents = [PurePosixPath(name).parts[:-1] for name in names]
    shared = len(list(takewhile(lambda level: len(set(level)) == 1, zip(*parents, strict=False))))
    return ["/".join(PurePosixPath(name).parts[shared:]) for name in names]


def _style() -> str:
    def rules(colours: Mapping[str, str], lines: Sequence[str]) -> str:
        value = {name: f"var(--{name}, {colour})" for name, colour in colours.items()}
        return "\n".join(
            [
                f".audio text {{ fill: {value['ink']} }} .audio .quiet {{ fill: {value['quiet']} }}",
                f".audio .axis, .audio .limit {{ stroke: {value['quiet']} }} .audio .wave {{ fill: {value['quiet']} }}",
                f".audio .frame {{ stroke: {value['line']} }} .audio .label {{ fill: {value['bar']} }}",
                f".audio .missed {{ stroke: {value['bad']} }}",
                f".audio .good {{ stroke: {value['good']}; fill: {value['good']} }}",
                f".audio .bad {{ stroke: {value['bad']}; fill: {value['bad']} }}",
                f".audio .other {{ stroke: {value['quiet']}; fill: {value['quiet']} }}",
                *(f".audio .score-{n} {{ stroke: {colour} }}" for n, colour in enumerate(lines)),
            ]
        )

    fixed = ".audio { max-width: 100%; min-width: 760px; height: auto; font: 12px system-ui, sans-serif }\n"
    fixed += ".audio .name { font-weight: 600 }\n"
    fixed += ".audio .frame, .audio .axis, .audio .line { fill: none } .audio .line { stroke-width: 1.6 }\n"
    fixed += ".audio .limit { stroke-dasharray: 4 3 } .audio .label { fill-opacity: .45 }\n"
    light, dark = (rules(colours, [pair[at] for pair in _SCORES]) for at, colours in enumerate((_LIGHT, _DARK)))
    return f"{fixed}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _legend(audio: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the score's classes, with the colours of their lines."""
    if len(audio["classes"]) < 2:
        return
    x = _LEFT
    for number, name in enumerate(audio["classes"]):
        label = escape.name(escape.shortened(name, 16))
        if x + 40 + 7 * len(label) > _RIGHT - 220:
            yield f'<text class="quiet" x="{x}" y="14">and {len(audio["classes"]) - number} more</text>'
            return
        yield f'<path class="line score-{number % _LINES}" d="M{x} 10h18"/>'
        yield f'<text x="{x + 24}" y="14">{xml(label)}</text>'
        x += 44 + 7 * len(label)


class _Panel:
    """One recording. `bottom` is where the next one begins."""

    def __init__(
        self, series: Series, recording: Recording, audio: Mapping[str, Any], file: Mapping[str, Any], top: int
    ) -> None:
        self._series, self._recording, self._audio, self._file = series, recording, audio, file
        self._top, self._wave = top, top + _HEAD
        self._heat = self._wave + _WAVE + _GAP
        self._score = self._heat + (_HEAT + _GAP if series.features else 0)
        self._texts: list[str] = []  # of labels, above the samples
        self._base = self._score + (_SCORE if series.classes else -_GAP)
        self.bottom = self._base + _AXIS

    def lines(self, wave: float, frames: npt.NDArray[Any] | None, heat: tuple[float, float] | None) -> Iterator[str]:
        """Yield the SVG. `wave`: loudest sample, `heat`: range of features, of all drawn files."""
        yield f'<text class="name" x="{_LEFT}" y="{self._top + 14}">{self._name()}</text>'
        yield f'<text class="quiet" x="{_RIGHT}" y="{self._top + 14}" text-anchor="end">{xml(self._result())}</text>'
        yield from self._labels()
        yield _title(self._wave + _WAVE // 2, "samples")
        yield f'<path class="wave" d="{self._envelope(wave)}"/>'
        yield from self._texts
        if frames is not None and heat is not None:
            yield _title(self._heat + _HEAT // 2, "features")
            yield _image(frames, heat, self._heat)
        if self._series.classes:
            yield from self._scores()
        yield from self._detections()
        yield from self._axis()

    def _name(self) -> str:
        name = xml(escape.name(escape.shortened(self._file["name"], _NAME)))
        return f'{name}<tspan class="quiet" font-weight="400">, {self._file["seconds"]:.3g} s</tspan>'

    def _result(self) -> str:
        if not self._audio["keywords"]:
            return ""
        if not self._audio["labelled"]:
            count = len(self._file["detections"])
            return f"{count} detection{'s' * (count != 1)}"
        missed = [label["class"] for label in self._file["labels"] if label["detected"] is None]
        verdicts = [detection["verdict"] for detection in self._file["detections"]]
        counts = {"detected": verdicts.count(HIT), "missed": len(missed)}
        counts |= {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts) if verdict != HIT}
        parts = [f"{count} {what}" for what, count in counts.items() if count]
        return ", ".join(parts) or "no keyword, none detected"

    def _x(self, time: float) -> float:
        share = min(max(time / float(self._file["seconds"]), 0.0), 1.0)
        return round(_LEFT + _COLUMNS * share, 1)

    def _labels(self) -> Iterator[str]:
        for label in self._file["labels"]:
            left, right = self._x(label["start"]), self._x(label["end"])
            missed = "" if label["detected"] is not None else " missed"
            width, height = max(right - left, 1.5), self._base - self._wave
            name = xml(escape.name(escape.shortened(label["class"], 24)))
            title = f"{name}, {label['start']:g} to {label['end']:g} s{', missed' if missed else ''}"
            yield (
                f'<rect class="label{missed}" x="{left}" y="{self._wave}" width="{width:.1f}" height="{height}">'
                f"<title>{title}</title></rect>"
            )
            self._texts.append(f'<text x="{left + 3}" y="{self._wave + 11}">{name}</text>')

    def _envelope(self, most: float) -> str:
        samples = self._series.samples(self._recording).astype(np.float64) / most
        starts = np.unique(np.linspace(0, len(samples), min(_COLUMNS, len(samples)), endpoint=False).astype(np.int64))
        low, high = np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)
        middle, half = self._wave + _WAVE / 2, _WAVE / 2
        x = _LEFT + _COLUMNS * starts / len(samples)
        over = [f"{a:.1f} {middle - half * b - 0.4:.1f}" for a, b in zip(x, high, strict=True)]
        under = [f"{a:.1f} {middle - half * b + 0.4:.1f}" for a, b in zip(x, low, strict=True)]
        return f"M{'L'.join(over)}L{'L'.join(reversed(under))}z"

    def _scores(self) -> Iterator[str]:
        scores = self._series.scores(self._recording)
        values = scores if scores is not None else self._series.decisions(self._recording)
        assert values is not None
        values = values.astype(np.float64)
        low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
        yield _title(self._score + _SCORE // 2, "score" if scores is not None else "decision")
        for y, number in ((self._score + 9, high), (self._base, low)):
            yield f'<text class="quiet" x="{_LEFT - 5}" y="{y}" text-anchor="end">{number:g}</text>'
        yield f'<rect class="frame" x="{_LEFT}" y="{self._score}" width="{_COLUMNS}" height="{_SCORE}"/>'

        def height(value: float) -> float:
            return float(round(self._base - _SCORE * (value - low) / (high - low), 1))

        limit = self._audio["threshold"]
        if limit is not None and self._audio["keywords"] and low <= limit <= high:
            yield f'<path class="limit" d="M{_LEFT} {height(limit)}H{_RIGHT}"/>'
        times = self._series.times(self._recording)
        starts = np.unique(np.linspace(0, len(times), min(_COLUMNS, len(times)), endpoint=False).astype(np.int64))
        for number, line in enumerate(np.maximum.reduceat(values, starts).T):
            points = "L".join(f"{self._x(times[at])} {height(value)}" for at, value in zip(starts, line, strict=True))
            yield f'<path class="line score-{number % _LINES}" d="M{points}h1"/>'

    def _detections(self) -> Iterator[str]:
        for detection in self._file["detections"]:
            verdict = detection["verdict"]
            kind = "good" if verdict == HIT else "bad" if verdict == FALSE else "other"
            x = self._x(detection["time"])
            text = f"{escape.name(detection['class'])} at {detection['time']:.3g} s"
            title = xml(", ".join(filter(None, [text, verdict])))
            mark = f"M{x} {self._wave}V{self._base}M{x - 4} {self._wave - 6}h8l-4 6z"
            yield f'<path class="{kind}" d="{mark}"><title>{title}</title></path>'

    def _axis(self) -> Iterator[str]:
        seconds, y = self._file["seconds"], self._base
        step = next(s * 10.0**p for p in range(-4, 7) for s in (1, 2, 5) if seconds <= s * 10.0**p * _TICKS)
        ticks = [number * step for number in range(int(seconds / step + 1e-9) + 1)]
        yield f'<path class="axis" d="M{_LEFT} {y}H{_RIGHT}{"".join(f"M{self._x(t)} {y}v4" for t in ticks)}"/>'
        for number, tick in enumerate(ticks):
            unit = " s" if number == len(ticks) - 1 else ""
            yield f'<text class="quiet" x="{self._x(tick)}" y="{y + 16}" text-anchor="middle">{tick:g}{unit}</text>'


def _title(y: float, text: str) -> str:
    return f'<text class="quiet" x="4" y="{y + 4}">{text}</text>'


def _loudest(samples: npt.NDArray[Any]) -> float:
    return float(np.abs(samples.astype(np.float64)).max(initial=0))


def _image(frames: npt.NDArray[Any], heat: tuple[float, float], top: int) -> str:
    """Return the heat map of [frames, channels], channel 0 below; `heat` is the range."""
    for axis, most in ((0, _COLUMNS), (1, _MOST_CHANNELS)):
        size = frames.shape[axis]
        starts = np.unique(np.linspace(0, size, min(most, size), endpoint=False).astype(np.int64))
        frames = np.maximum.reduceat(frames, starts, axis=axis)
    low, high = heat
    share = (frames.astype(np.float64) - low) / ((high - low) or 1.0)
    stops = np.linspace(0, 1, len(_HEAT_COLOURS))
    channels = [np.interp(share, stops, [colour[at] for colour in _HEAT_COLOURS]) for at in range(3)]
    pixels = np.rint(np.stack(channels, -1)).astype(np.uint8).transpose(1, 0, 2)[::-1]
    uri = f"data:image/png;base64,{base64.b64encode(png(np.ascontiguousarray(pixels))).decode('ascii')}"
    place = f'x="{_LEFT}" y="{top}" width="{_COLUMNS}" height="{_HEAT}"'
    return f'<image {place} preserveAspectRatio="none" style="image-rendering: pixelated" href="{uri}"/>'
