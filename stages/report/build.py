"""Build report.json from the other stages' artifacts.

On publishing, the runner adds `tools` and `stages`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from stages.base import Job
from stages.ir.graph import Graph
from stages.ir.samples.sample_warnings import chance_warning
from stages.report.advice.advise import advise
from stages.report.advice.facts import Facts
from stages.report.audio.load import load, overload
from stages.report.board import board
from stages.report.classes import check_classes
from stages.report.config import ReportConfig
from stages.report.cycles import PICTURE, cycles, far_off
from stages.report.estimate import chosen_by, estimated_cycles, of_layer
from stages.report.parts import parts
from stages.report.quantization import FILE, RANGES, quantization
from stages.report.ranges_svg import ranges_svg
from stages.report.streaming import rows_by_layer, streaming

FORMAT = 1
_BLOCK = ("part", "region", "bytes", "symbol", "address", "loaded_from")


def write_report(job: Job[ReportConfig]) -> None:
    """Write report.json, report.html, report.md and their pictures into the job's folder."""
    from stages.report.audio.picture import audio_svg
    from stages.report.audio.section import PICTURE as AUDIO
    from stages.report.audio.section import TABLE, audio_section, read_series, write_table
    from stages.report.html.extras import gathered
    from stages.report.html.page import page
    from stages.report.markdown import markdown
    from stages.report.timeline import timeline_svg

    outputs = _reader(Path(job.inputs["emit"]))("model.json")["outputs"]
    check_classes(job.config.classes, prod(outputs[0]["shape"]))
    series = read_series(job.inputs, job.config.classes)
    audio = audio_section(series, job.config.detection, job.config.classes) if series is not None else None
    report = build_report(job.inputs, job.target.name, job.target.model_dump(mode="json"), job.config.clock, audio)
    (job.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (job.out / "report.md").write_text(markdown(report))
    timeline, ranges = timeline_svg(report), ""
    if timeline:
        (job.out / PICTURE).write_text(timeline)
    if report["quantization"] is not None:
        ranges = ranges_svg(report["quantization"]["layers"])
        (job.out / RANGES).write_text(ranges)
        (job.out / FILE).write_bytes((job.inputs["ptq"] / "model.tflite").read_bytes())
    drawn = ""
    if series is not None and audio is not None:
        drawn = audio_svg(series, audio)
        (job.out / AUDIO).write_text(drawn)
        write_table(job.out / TABLE, series, audio["classes"])
    extras = replace(gathered(job.inputs, timeline, ranges, job.config.classes), audio=drawn)
    (job.out / "report.html").write_text(page(report, extras))


def build_report(
    artifacts: Any,
    target: str,
    target_fields: dict[str, Any],
    clock: int | None = None,
    audio: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the report as a dictionary. docs/reference/report.md documents every field.

    `clock` (Hz) is the recipe's, for a core. `audio` is the section on recordings, without their `load`.

    `artifacts` maps stage kinds to folders. compile, simulate, verify and ptq are optional: their fields are then
    None or empty. Instructions are for the first inference; `minimum` and `maximum` are over all inferences.
    They differ slightly because some kernels, such as softmax, have data-dependent paths.
    """
    from stages.report.blocked_by_layout import blocked_by_layout

    graph = Graph.load(Path(artifacts["quantize"]))
    readers = {kind: _reader(Path(folder)) for kind, folder in artifacts.items()}
    import_facts = readers["import"]("import.json")
    model = readers["emit"]("model.json")
    tensorized = readers["tensorize"]("plan.json")
    sizes = readers["compile"]("sizes.json") if "compile" in readers else {}
    counts = readers["simulate"]("counts.json") if "simulate" in readers else {"inferences": []}
    verified = readers["verify"]("verify.json") if "verify" in readers else None
    quantized = readers["ptq"]("ptq.json") if "ptq" in readers else None

    counted = target_fields["counter"] != "none"
    totals = [inference["total"] for inference in counts["inferences"]]
    known = totals if counted else []
    layers = _layers(model, tensorized, counts, counted)
    laid_out = Graph.load(Path(artifacts["tensorize"]), constants=False)
    measured = cycles(counts, tensorized, target_fields)
    report = {
        "format": FORMAT,
        "model": {
            "name": import_facts["name"],
            "sha256": import_facts["sha256"],
            "signature": import_facts["signature"],
            "macs": sum(layer["macs"] for layer in model["layers"]),
        },
        "target": target,
        "board": board(target_fields),
        "ran": counts.get("ran"),
        "extensions": target_fields["extensions"],
        "verify": verified,
        "quantization": quantization(quantized, verified),
        "legalize": legalize(graph),
        "simplify": {
            "macs": sum(graph.macs(layer) for layer in graph.layers),
            "rewrites": tensorized.get("rewrites", []),
        },
        "cycles": measured,
        "estimated_cycles": estimated_cycles(counts, target_fields, clock),
        "chosen_by": chosen_by(tensorized, target_fields),
        "counted": tensorized.get("counted", 0),
        "streaming": streaming(tensorized),
        "audio": None,
        "instructions": {
            "total": known[0] if known else None,
            "minimum": min(known, default=None),
            "maximum": max(known, default=None),
        },
        "memory": _memory(model, sizes, counts, counted),
        "layers": layers,
        "parts": parts(import_facts.get("parts", ()), layers),
        "arena": _in_regions("arena", model["arena"], sizes.get("blocks", [])),
        "weights": _in_regions("weights", model["constants"], sizes.get("blocks", [])),
        "warnings": [
            *(quantized["warnings"] if quantized else ()),
            *import_facts["warnings"],
            *readers["layout"]("layouts.json")["warnings"],
            *tensorized.get("warnings", []),
            *model.get("warnings", []),
            *counts.get("warnings", []),
            *(far_off(measured) if measured else ()),
            *_accuracy_warnings(verified, model),
            *blocked_by_layout(layers, laid_out, _engine(target_fields)),
        ],
        "symbols": sizes.get("symbols", []),
    }
    if audio is not None:
        steps = [at for file in audio["files"] for at in range(file["first"], file["first"] + file["steps"])]
        report["audio"] = {**audio, "load": load(report, [totals[at] for at in steps], audio["step_seconds"], clock)}
        report["warnings"] += [*audio["warnings"], *overload(report["audio"]["load"], audio["step_seconds"])]
    regions = {
        name: region
        for name, region in (target_fields["memory"] or {}).items()
        if isinstance(region, dict) and "speed" in region
    }
    ruled = frozenset((block["region"], block["part"]) for block in model.get("blocks", ()) if block.get("rules"))
    return {**report, "advice": advise(Facts(report, tensorized, laid_out, graph, regions, ruled))}


def _layers(
    model: dict[str, Any], tensorized: dict[str, Any], counts: dict[str, Any], counted: bool
) -> list[dict[str, Any]]:
    """Return the layers of model.json with their counts and the reasons for their kernels."""
    plan = {entry["index"]: entry for entry in tensorized["layers"]}
    rows = rows_by_layer(tensorized)
    first = counts["inferences"][0]["layers"] if counted and counts["inferences"] else None
    return [
        {
            **layer,
            "instructions": first[position] if first else None,
            "estimated_cycles": of_layer(counts, position),
            "why": plan.get(layer["index"], {}).get("why"),
            "cost_source": plan.get(layer["index"], {}).get("cost_source", ""),
            "alternatives": plan.get(layer["index"], {}).get("alternatives", []),
            "distance": plan.get(layer["index"], {}).get("distance"),
            "rows": rows.get(layer["index"]),
        }
        for position, layer in enumerate(model["layers"])
    ]


def _memory(model: dict[str, Any], sizes: dict[str, Any], counts: dict[str, Any], counted: bool) -> dict[str, Any]:
    """Return the bytes of RAM and ROM, with the memory map."""
    return {
        "arena_bytes": model["arena_bytes"],
        **({"state_bytes": model["state"]["bytes"]} if "state" in model else {}),
        # Without a counter the program runs on the host, and sanitizers dominate its size.
        "rom_bytes": sizes.get("rom_bytes") if counted else None,
        "ram_bytes": ram_bytes(sizes, counts) if counted else None,
        "stack_bytes": counts.get("stack_bytes"),
        "weights_bytes": model["weights_bytes"],
        "model_rom_bytes": sizes.get("model_rom_bytes") if counted else None,
        "regions": sizes.get("regions", []),
        "blocks": [{key: block[key] for key in _BLOCK} for block in sizes.get("blocks", [])],
    }


def _accuracy_warnings(verified: Mapping[str, Any] | None, model: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning if the firmware's accuracy is no better than chance."""
    accuracy = (verified or {}).get("accuracy")
    if accuracy:
        hits = accuracy["ours"] * accuracy["images"]
        if warning := chance_warning(hits, accuracy["images"], prod(model["outputs"][0]["shape"])):
            yield warning


def _engine(target_fields: dict[str, Any]) -> str:
    """Return the name of the target's accelerator, or ''."""
    return str((target_fields.get("accelerator") or {}).get("kind", ""))


def _in_regions(part: str, rows: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add each row's region to the plan of the arena or of the weights.

    Emit omits it if there is only one region.
    """
    only = next((block["region"] for block in blocks if block["part"] == part), "")
    return [{**row, "region": row.get("region") or only} for row in rows]


def legalize(graph: Graph) -> dict[str, Any]:
    """Count the activations of each type in quantize's graph, and list widened tensors."""
    from stages.quantize.checks import widened

    counts = Counter(tensor.dtype for tensor in graph.tensors.values() if not tensor.constant)
    return {"tensors": dict(sorted(counts.items())), "widened": widened(graph)}


def ram_bytes(sizes: dict[str, Any], counts: dict[str, Any]) -> int | None:
    """Return an inference's RAM in bytes: data, bss (with arena), measured stack."""
    if sizes.get("data") is None or counts.get("stack_bytes") is None:
        return sizes.get("ram_bytes")
    return int(sizes["data"]) + int(sizes["bss"]) + int(counts["stack_bytes"])


def _reader(folder: Path) -> Any:
    return lambda name: json.loads((folder / name).read_text())
