"""Lines about recordings for the terminal and the reports."""

from collections.abc import Mapping
from typing import Any

from stages.support.messages import escape


def audio_lines(audio: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of each line, from report.json's `audio`."""
    files = len(audio["files"])
    steps = f"{audio['steps']:,} steps of {1000 * audio['step_seconds']:g} ms"
    lines = [("audio", f"{files:,} file{'s' * (files != 1)}, {_length(audio['seconds'])}: {steps}{_rule(audio)}")]
    lines += [
        ("keyword", f"{escape.name(keyword['name'])}: {_result(audio, keyword)}") for keyword in audio["keywords"]
    ]
    if not audio["keywords"] and len(audio["classes"]) > 1:
        choice = "`report: {classes: [...], detection: {keywords: [...]}}` selects"
        lines.append(("keyword", f"none of the {len(audio['classes'])} classes is chosen: {choice}"))
    if audio["labelled"] and audio["keywords"]:
        rate = audio["false_accepts_per_hour"]
        per_hour = f": {_rate(rate)} per hour" if rate is not None else ""
        lines.append(("false accepts", f"{audio['false_accepts']:,} in {_length(audio['quiet_seconds'])}{per_hour}"))
    if load := audio["load"]:
        lines += _load(load, audio["step_seconds"])
    return lines


def _rule(audio: Mapping[str, Any]) -> str:
    if not audio["keywords"]:
        return ""
    skipped = f", without the first {audio['skip']:g} s of each file" if audio["skip"] else ""
    if audio["decision"]:
        return f"; decisions of {escape.name(audio['decision'])}{skipped}"
    return f"; detected from {escape.name(audio['score'])} {audio['threshold']:g} on{skipped}"


def _result(audio: Mapping[str, Any], keyword: Mapping[str, Any]) -> str:
    """Return `3 of 4 detected, 0.61 s after the start (0.80 s at most); 2 false accepts`."""
    if not audio["labelled"]:
        return _count(keyword["detections"], "detection") + ", no labels to compare with"
    if not keyword["labels"]:
        return f"never spoken; {', '.join(_wrong(keyword))}"
    text = f"{keyword['detected']:,} of {keyword['labels']:,} detected"
    if delay := keyword["after_start"]:
        text += f", {delay['mean']:.2f} s after the start ({delay['most']:.2f} s at most)"
    return f"{text}; {', '.join(_wrong(keyword))}"


def _wrong(keyword: Mapping[str, Any]) -> list[str]:
    """`2 false accepts`, `1 confused`."""
    wrong = [f"{keyword[kind]:,} {kind}" for kind in ("confused", "repeated") if keyword[kind]]
    return [_count(keyword["false_accepts"], "false accept"), *wrong]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _length(seconds: float) -> str:
    """Return `0.98 s`, `42 s`, `1.50 h`."""
    return f"{seconds / 3600:.2f} h" if seconds >= 600 else f"{seconds:.3g} s"


def _load(load: Mapping[str, Any], step_seconds: float) -> list[tuple[str, str]]:
    work = f"{load['step']:,} {load['unit']} for {1000 * step_seconds:g} ms"
    if load["duty"] is None:
        return [("load", f"{work} ({load['most']:,} at most)")]
    clock, longest = f"{load['clock'] / 1e6:g} MHz", _percent(load["longest"])
    lines = [("duty cycle", f"{_percent(load['duty'])} at {clock}: {work} ({load['most']:,}, {longest}, at most)")]
    if load["mah_per_hour"] is None:
        lines.append(("charge", "unknown: no board with power"))
    else:
        energy = f"{load['mah_per_hour']:.3g} mAh, {load['mwh_per_hour']:.3g} mWh"
        lines.append(("charge", f"{energy} per hour, only while it computes"))
    return lines


def _rate(number: float) -> str:
    """Return `1,043`, `12.5`, `0.65`."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
