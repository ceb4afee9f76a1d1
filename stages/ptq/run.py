"""Runs the stage: the float network on data, its ranges, the quantized file, and how far that is from the float one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from stages.base import Job, StageError
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference
from stages.ir.samples.sample_warnings import chance_warning
from stages.ptq.bias_correction import corrected, mean_inputs
from stages.ptq.clipping import BINS, USUAL_PERCENTILE, by_error, by_percentile, clipped
from stages.ptq.compare import Comparison, compare
from stages.ptq.data import Sample, calibration, evaluation
from stages.ptq.equalization import equalized
from stages.ptq.float_model import FloatModel, float_model
from stages.ptq.observe import Range, histograms, ranges, runs
from stages.ptq.precision import described, precisions
from stages.ptq.quantizer import Quantized, check_runs, quantize
from stages.ptq.summary import MODEL, SUMMARY, file_entry, layer_entries, worst
from stages.support.messages import escape
from stages.support.messages.wording import several

if TYPE_CHECKING:
    from stages.ptq.stage import PtqConfig

_AT = ("stages", "quantize")
_FEW = 5  # samples
_LEAST_SNR, _MOST_LOSS = 10.0, 10.0  # dB and percentage points: beyond, nobody means it


def run(job: Job[PtqConfig]) -> None:
    """Writes model.tflite and ptq.json. Raises StageError for data or a model that do not fit, and too much loss."""
    from stages.import_model.stage import model_bytes

    config, data = job.config, model_bytes(job)
    source = str(getattr(job.model, "file", "") or getattr(job.model, "url", "")) or "the model"
    model = float_model(job.model, data, source)
    samples = calibration(config, job.files, model.info)
    judged = evaluation(config, job.files, model.info)
    if config.equalize:
        model = _equalized(model, job)
    reference = Reference(model.data, name="the float network")
    seen = ranges(reference, samples, _progress(job, "calibrate", len(samples)))
    taken = _clipped(job, reference, samples, seen)
    wanted, notes = precisions(model.info, config)
    job.log(f"{len(samples)} samples; operators: {described(list(wanted.values()))}")
    quantized = quantize(model.data, model.info, taken, wanted, config.per_channel)
    if config.bias_correction:
        means = mean_inputs(runs(reference, samples, _progress(job, "means", len(samples))))
        better, count = corrected(model.data, model.info, quantized, means)
        quantized = quantize(better, model.info, taken, wanted, config.per_channel)
        job.log(f"biases of {count} layers corrected")
    check_runs(quantized)
    judged = samples if judged is None else judged
    found = compare(reference, quantized, judged, _progress(job, "compare", len(judged)))
    layers = layer_entries(model.info, quantized, seen, found)
    _check_loss(found, layers, config)
    (job.out / MODEL).write_bytes(quantized.data)
    summary = {
        "float": file_entry(data),
        "quantized": file_entry(quantized.data),
        "samples": len(samples),
        "evaluated": config.evaluate is not None,
        "accuracy": found.accuracy(),
        "loss": round(found.loss, 4),
        "snr": round(found.outputs.snr, 2),
        "layers": layers,
        "warnings": [
            *(*model.notes, *notes, *_left_float(model, quantized, wanted), *_always_zero(model, seen)),
            *(*_few(samples), *_ruined(found, layers), *_guessing(found, reference)),
        ],
    }
    (job.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
    for line in said(found):
        job.log(line)


def _equalized(model: FloatModel, job: Job[PtqConfig]) -> FloatModel:
    data, count = equalized(model.data, model.info)
    job.log(f"{count} pairs of layers equalized")
    none = "equalize changes nothing: no two layers in a row have only ReLU, pooling or nothing between them"
    return FloatModel(data, read(data, "the equalized network"), model.notes if count else (*model.notes, none))


def _clipped(
    job: Job[PtqConfig], reference: Reference, samples: Sequence[Sample], seen: Mapping[int, Range]
) -> Mapping[int, Range]:
    """The ranges to quantize by, of those that were seen."""
    config = job.config
    if config.ranges == "minmax":
        return seen
    counts = histograms(reference, samples, seen, BINS, _progress(job, "histograms", len(samples)))
    share = USUAL_PERCENTILE if config.percentile is None else config.percentile
    bits = int(config.activations.removeprefix("int"))
    return clipped(seen, counts, by_percentile(share) if config.ranges == "percentile" else by_error(bits))


def said(found: Comparison) -> list[str]:
    """The comparison in sentences."""
    shares = found.accuracy()
    lines = [f"outputs: {found.outputs.snr:.1f} dB from the float network, same class in {shares['agree']:.2%}"]
    if found.labelled:
        lines.append(f"accuracy: float {shares['float']:.2%}, quantized {shares['quantized']:.2%} of {found.labelled}")
    return lines


def _progress(job: Job[PtqConfig], what: str, count: int) -> Any:
    return lambda number: job.progress(f"{what}: sample {number + 1} of {count}", number / count)


def _check_loss(found: Comparison, layers: Sequence[dict[str, Any]], config: PtqConfig) -> None:
    """Raises StageError for a network that is further from the float one than the recipe allows."""
    most = several([escape.name(one, 200) for one in worst(layers)])
    hint = f"most is lost in {most}" if most else ""
    if config.max_loss is not None and found.loss > config.max_loss:
        shares = found.accuracy()
        if found.labelled:
            told = f"accuracy {shares['quantized']:.2%}, of the float network {shares['float']:.2%}"
        else:
            told = f"the class changes in {1 - shares['agree']:.2%} of {found.samples} samples"
        message = f"{told}: a loss of {found.loss:.2f} percentage points, {config.max_loss:g} are allowed"
        raise StageError(message, hint=hint, at=(*_AT, "max_loss"))
    if config.min_snr is not None and found.outputs.snr < config.min_snr:
        message = f"the outputs are {found.outputs.snr:.1f} dB from the float network's, {config.min_snr:g} are wanted"
        raise StageError(message, hint=hint, at=(*_AT, "min_snr"))


def _few(samples: Sequence[Sample]) -> tuple[str, ...]:
    """A sentence on data too few for ranges."""
    if len(samples) >= _FEW:
        return ()
    one = "1 sample" if len(samples) == 1 else f"{len(samples)} samples"
    return (f"the ranges are of {one}: other inputs may lie outside of them; some hundred are usual",)


def _guessing(found: Comparison, reference: Reference) -> list[str]:
    """A sentence on a float network that is not better than guessing, which no loss shows."""
    doubt = chance_warning(found.float_hits, found.labelled, prod(reference.outputs[0].shape))
    return [f"of the float network {doubt}"] if doubt else []


def _ruined(found: Comparison, layers: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence on a network that is no longer the float one, whether or not the recipe has a limit."""
    told = []
    if found.outputs.snr < _LEAST_SNR:
        told.append(f"its outputs are {found.outputs.snr:.1f} dB from the float network's")
    if found.labelled and found.loss > _MOST_LOSS:
        told.append(f"its accuracy is {found.loss:.1f} percentage points lower")
    if not told:
        return []
    most = several([escape.name(one, 200) for one in worst(layers)])
    lost = f"; most is lost in {most}" if most else ""
    return [f"the quantized network is hardly the float one: {' and '.join(told)}{lost}"]


def _left_float(model: FloatModel, quantized: Quantized, wanted: Any) -> list[str]:
    """A sentence on operators without integers."""
    left = [
        operator.op
        for operator in model.info.operators
        if wanted[operator.index] is not None
        and model.info.tensors[operator.outputs[0]].dtype == "float32"
        and (tensor := quantized.tensor(operator.outputs[0])) is not None
        and tensor.dtype == "float32"
    ]
    if not left:
        return []
    counted = several([f"{count} x {op}" for op, count in sorted(Counter(left).items())])
    return [f"there are no integers for {counted}: they stay float"]


def _always_zero(model: FloatModel, seen: Any) -> list[str]:
    """A sentence on tensors that the data tell nothing of."""
    named = [escape.quoted(model.info.tensors[index].name) for index, one in seen.items() if one.low == one.high == 0.0]
    return [f"on all calibration data these are 0, and have no range: {several(named)}"] if named else []
