"""Render the page from the report and the extras."""

from collections.abc import Mapping
from typing import Any

from stages.report.advice.advise import advice_line as line
from stages.report.audio.text import audio_lines
from stages.report.board import counted, per_mac
from stages.report.estimate import energy_text, short
from stages.report.html import RUN, command_mark
from stages.report.html.extras import Extras
from stages.report.html.memory import HEIGHT as ARENA_HEIGHT
from stages.report.html.memory import WIDTH as ARENA_WIDTH
from stages.report.html.memory import arenas, short_name
from stages.report.html.network import NODE, drawing
from stages.report.html.network import WIDTH as NODE_WIDTH
from stages.report.html.rom import HEIGHT as ROM_HEIGHT
from stages.report.html.rom import WIDTH as ROM_WIDTH
from stages.report.html.rom import boxes, groups
from stages.report.html.terms import Terms
from stages.report.latency import latency, layer_milliseconds
from stages.report.rows import percent_of, shape, summary
from stages.report.streaming import group_cells, rows_of
from stages.support.messages import escape
from stages.support.messages.templates import environment

_GOOD, _BAD, _OPEN = "good", "bad", "open"


def page(report: Mapping[str, Any], extras: Extras) -> str:
    """Return the HTML of the page."""
    import jinja2

    templates = environment(jinja2.PackageLoader("stages.report.html"), strict=False)
    templates.filters |= {
        "name": escape.name,
        "text": escape.line,
        "number": _number,
        "short": short,
        "pixels": _pixels,
    }
    rom = groups(report)
    return templates.get_template("report.html.j2").render(
        report=report,
        title=f"{report['model']['name']} on {report['target']}",
        verdict=verdict(report),
        cards=_cards(report),
        facts=summary(dict(report)),
        rows=_rows(report),
        network=drawing(report, extras.edges),
        node={"height": NODE, "width": NODE_WIDTH},
        arenas=list(arenas(report)),
        arena={"width": ARENA_WIDTH, "height": ARENA_HEIGHT},
        rom=list(boxes(rom)),
        rom_size={"width": ROM_WIDTH, "height": ROM_HEIGHT},
        rom_groups=[(name, sum(symbol.bytes for symbol in symbols)) for name, symbols in rom.items()],
        extras=extras,
        audio=audio_lines(report["audio"]) if report.get("audio") else [],
        samples=[*extras.inputs, *extras.outputs],
        run=RUN,
        advice=[
            (entry["about"], line(entry), command_mark(number)) for number, entry in enumerate(report.get("advice", ()))
        ],
        terms=Terms(),
        streamed=group_cells(report["streaming"]) if report.get("streaming") else [],
        timed=_time_column(report),
        unit=(report.get("chosen_by") or {}).get("unit", "instructions"),
        counted=counted(report),
    )


def verdict(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return the result for the top of the page: `good`, `bad` or `open`, and a sentence."""
    verify = report["verify"]
    if not verify:
        return _OPEN, "Outputs were not compared"
    if verify["mismatches"]:
        return _BAD, f"{verify['mismatches']:,} of {verify['outputs_checked']:,} output values differ"
    if verify.get("float") and verify["float"]["max_relative"]:
        limit = f"within {verify['float']['tolerance']:g} of the reference"
        sentence, checked = limit.capitalize(), f"{verify['outputs_checked']:,} output values {limit}"
    else:
        checked = f"{verify['outputs_checked']:,} output values match the reference, byte for byte"
        sentence = f"All {checked}"
    restrictions = _restrictions(verify)
    return (_OPEN, "; ".join([checked, *restrictions])) if restrictions else (_GOOD, sentence)


def _restrictions(verify: Mapping[str, Any]) -> list[str]:
    """Return the result's limits: unverified inferences, outputs that may differ."""
    sentences = []
    names = {name for which in ("without_reference", "overflowed", "tied") for name in verify.get(which) or ()}
    if names:
        total = verify["inputs"] + len(names)
        sentences.append(f"{len(names):,} of {total:,} inferences {'was' if len(names) == 1 else 'were'} not verified")
    outputs = (verify.get("distance") or {}).get("outputs")
    if outputs and outputs["differing"]:
        counts = f"{outputs['differing']:,} of {outputs['values']:,} values differ from the reference"
        sentences.append(f"{counts}, by at most {outputs['largest']:g}")
    return sentences


def _cards(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the figures at the top of the page.

    `value` is text. `share` is the used part of a memory, 0 to 1, or None. `term` is the title's entry in the glossary.
    """
    memory, total = report["memory"], report["instructions"]["total"]
    cards: list[dict[str, Any]] = []
    estimate = report.get("estimated_cycles")
    if time := latency(report):
        cards.append(_card(f"latency, {time.how}", time.text, time.basis, term=time.term))
    elif estimate:
        note = f"timing model {estimate['model']}; set=stages.report.clock=100M gives milliseconds"
        cards.append(_card("estimated cycles", f"{estimate['total']:,}", note, term="estimated cycles"))
    if estimate and energy_text(estimate):
        power = report["board"]["power"]
        note = f"time x the current that the data sheet states, at {power['supply_v']:g} V: {power['source']}"
        cards.append(_card("energy, estimated", energy_text(estimate), note, term="estimated cycles"))
    if total is not None:
        ratio = per_mac(report, total, report["model"]["macs"])
        cards.append(_card(counted(report), f"{total:,}", f"{ratio:.3f} per MAC" if ratio else "", term="count"))
    for title, key in (("RAM", "ram_bytes"), ("ROM", "rom_bytes")):
        if memory.get(key) is not None:
            capacity = sum(region["length"] for region in memory["regions"] if _counts(region, title == "RAM"))
            share = memory[key] / capacity if capacity and report["board"] else None
            note = f"{100 * share:.1f} % of {capacity:,} used" if share is not None else ""
            cards.append(_card(f"{title}, bytes", f"{memory[key]:,}", note, share, title))
    for title, key in (("arena", "arena_bytes"), ("stack", "stack_bytes"), ("weights", "weights_bytes")):
        if memory.get(key) is not None:
            term = "constant" if title == "weights" else title
            cards.append(_card(f"{title}, bytes", f"{memory[key]:,}", "", term=term))
    if accuracy := (report["verify"] or {}).get("accuracy"):
        right, samples = round(accuracy["ours"] * accuracy["images"]), accuracy["images"]
        note = f"{right:,} of {samples:,} samples"
        cards.append(_card("accuracy", percent_of(right, samples), note, term="label"))
    return cards


def _card(title: str, value: str, note: str, share: float | None = None, term: str = "") -> dict[str, Any]:
    return {"title": title, "value": value, "note": note, "share": share, "term": term}


def _counts(region: Mapping[str, Any], written: bool) -> bool:
    """Return whether a region counts for RAM (`written`) or ROM.

    Aliases of other regions do not count.
    """
    return region["written"] == written and not region.get("same_as")


def _rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    total = report["instructions"]["total"] or 0
    most = max((layer["instructions"] or 0 for layer in report["layers"]), default=0)
    rows = []
    for layer in report["layers"]:
        count, macs = layer["instructions"], layer["macs"]
        ratio = per_mac(report, count, macs)
        rows.append(
            {
                **layer,
                "short": short_name(layer["name"]),
                "shape": shape(layer["shape_out"]),
                "by_rows": rows_of(layer),
                "share": count / total if count and total else 0.0,
                "bar": count / most if count and most else 0.0,
                "per_mac": ratio,
                "time": layer_milliseconds(report, layer),
            }
        )
    return rows


def _time_column(report: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return title and tooltip of the column with each layer's time; None without cycles."""
    time, estimate = latency(report), report.get("estimated_cycles")
    if estimate and estimate["is_range"]:
        return "est. cycles", f"estimated by the timing model {estimate['model']}, with the fewest wait states"
    if time is not None:
        return ("est. ms" if time.how == "estimated" else "ms"), f"{time.how}: {time.basis}"
    return ("est. cycles", f"estimated by the timing model {estimate['model']}") if estimate else None


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _pixels(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
