"""Run the stage: calibrate, quantize, compare with the float network."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.base import Job, StageError
from stages.import_model.model_files import model_bytes
from stages.ir.models.chain.spec import ChainModel
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference
from stages.ir.samples.sample_warnings import chance_warning
from stages.ir.samples.wav import model_rate
from stages.ptq.bias_correction import corrected, mean_inputs
from stages.ptq.compare import Comparison, compare
from stages.ptq.config import PtqConfig
from stages.ptq.data import Sample, calibration, evaluation
from stages.ptq.equalization import equalized
from stages.ptq.float_model import FloatModel, float_model
from stages.ptq.observe import Range, histograms, ranges, runs
from stages.ptq.precision import described, precisions
from stages.ptq.quantizer import Quantized, check_runs, quantize
from stages.ptq.summary import MODEL, SUMMARY, file_entry, layer_entries, worst
from stages.support.messages import escape
from stages.support.messages.wording import several

_AT = ("stages", "quantize")
_FEW_SAMPLES = 5  # samples
_LOW_SNR, _HIGH_LOSS = 10.0, 10.0  # dB and percentage points: limits of the warning


def run(job: Job[PtqConfig]) -> None:
    """Write model.tflite and ptq.json. Raises StageError for unfit data, or a large loss."""
    assert not isinstance(job.model, ChainModel)  # checked by preflight
    config, data = job.config, model_bytes(job.model, job.files)
    source = str(getattr(job.model, "file", "") or getattr(job.model, "url", "")) or "the model"
    model = float_model(job.model, data, source)
    samples = calibration(config, job.files, model.info, model_rate(job.model))
    eval_samples = evaluation(config, job.files, model.info, model_rate(job.model))
    if config.equalize:
        model = _equalize(model, job)
    reference = Reference(model.data, name="the float network")
    seen_ranges = ranges(reference, samples, _progress(job, "calibrate", len(samples)))
    selected = _clip_ranges(job, reference, samples, seen_ranges)
    operator_precisions, notes = precisions(model.info, config)
    job.log(f"{len(samples)} samples; operators: {described(list(operator_precisions.values()))}")
    quantized = quantize(model.data, model.info, selected, operator_precisions, config.per_channel)
    if config.bias_correction:
        means = mean_inputs(runs(reference, samples, _progress(job, "means", len(samples))))
        corrected_data, count = corrected(model.data, model.info, quantized, means)
        quantized = quantize(corrected_data, model.info, selected, operator_precisions, config.per_channel)
        job.log(f"biases of {count} layers corrected")
    check_runs(quantized)
    eval_samples = samples if eval_samples is None else eval_samples
    comparison = compare(reference, quantized, eval_samples, _progress(job, "compare", len(eval_samples)))
    layers = layer_entries(model.info, quantized, seen_ranges, comparison)
    _check_loss(comparison, layers, config)
    (job.out / MODEL).write_bytes(quantized.data)
    summary = {
        "float": file_entry(data),
        "quantized": file_entry(quantized.data),
        "samples": len(samples),
        "evaluated": config.evaluate is not None,
        "accuracy": comparison.accuracy(),
        "loss": round(comparison.loss, 4),
        "snr": round(comparison.outputs.snr, 2),
        "layers": layers,
        "warnings": [
            *model.notes,
            *notes,
            *_left_float(model, quantized, operator_precisions),
            *_always_zero(model, seen_ranges),
            *_few_samples(samples),
            *_large_loss(comparison, layers),
            *_chance_warning(comparison, reference),
        ],
    }
    (job.out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
    for line in summary_lines(comparison):
        job.log(line)


def _equalize(model: FloatModel, job: Job[PtqConfig]) -> FloatModel:
    data, count = equalized(model.data, model.info)
    job.log(f"{count} pairs of layers equalized")
    no_pairs = "equalize changes nothing: no two successive layers have only ReLU, pooling or nothing between them"
    return FloatModel(data, read(data, "the equalized network"), model.notes if count else (*model.notes, no_pairs))


def _clip_ranges(
    job: Job[PtqConfig], reference: Reference, samples: Sequence[Sample], seen: Mapping[int, Range]
) -> Mapping[int, Range]:
    """Return the ranges for quantization, clipped as the recipe says."""
    config = job.config
    if config.ranges == "minmax":
        return seen
    counts = histograms(reference, samples, seen, BINS, _progress(job, "histograms", len(samples)))
    share = USUAL_PERCENTILE if config.percentile is None else config.percentile
    bits = int(config.activations.removeprefix("int"))
    return clipped(seen, counts, by_percentile(share) if config.ranges == "percentile" else by_error(bits))


def summary_lines(comparison: Comparison) -> list[str]:
    """Return the comparison as lines for the log."""
    shares = comparison.accuracy()
    lines = [f"outputs: {comparison.outputs.snr:.1f} dB from the float network, same class in {shares['agree']:.2%}"]
    if comparison.labelled:
        lines.append(
            f"accuracy: float {shares['float']:.2%}, quantized {shares['quantized']:.2%} of {comparison.labelled}"
        )
    return lines


def _progress(job: Job[PtqConfig], what: str, count: int) -> Any:
    return lambda number: job.progress(f"{what}: sample {number + 1} of {count}", number / count)


def _check_loss(comparison: Comparison, layers: Sequence[dict[str, Any]], config: PtqConfig) -> None:
    """Raise StageError if the loss exceeds the recipe's limits."""
    worst_layers = several([escape.name(layer, 200) for layer in worst(layers)])
    hint = f"largest losses: {worst_layers}" if worst_layers else ""
    if config.max_loss is not None and comparison.loss > config.max_loss:
        shares = comparison.accuracy()
        if comparison.labelled:
            result = f"accuracy {shares['quantized']:.2%}, of the float network {shares['float']:.2%}"
        else:
            result = f"the class changes in {1 - shares['agree']:.2%} of {comparison.samples} samples"
        message = f"{result}: a loss of {comparison.loss:.2f} percentage points; max_loss is {config.max_loss:g}"
        raise StageError(message, hint=hint, at=(*_AT, "max_loss"))
    if config.min_snr is not None and comparison.outputs.snr < config.min_snr:
        message = (
            f"the outputs are {comparison.outputs.snr:.1f} dB from the float network's; min_snr is {config.min_snr:g}"
        )
        raise StageError(message, hint=hint, at=(*_AT, "min_snr"))


def _few_samples(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return a warning about few samples."""
    if len(samples) >= _FEW_SAMPLES:
        return ()
    count = "1 sample" if len(samples) == 1 else f"{len(samples)} samples"
    return (f"the ranges come from {count}: other inputs may exceed them; use some hundred samples",)


def _chance_warning(comparison: Comparison, reference: Reference) -> list[str]:
    """Return a warning about a float network that is no better than chance."""
    message = chance_warning(comparison.float_hits, comparison.labelled, prod(reference.outputs[0].shape))
    return [f"of the float network {message}"] if message else []


def _large_loss(comparison: Comparison, layers: Sequence[dict[str, Any]]) -> list[str]:
    """Return a warning about a large loss, independent of the recipe's limits."""
    problems = []
    if comparison.outputs.snr < _LOW_SNR:
        problems.append(f"its outputs are {comparison.outputs.snr:.1f} dB from the float network's")
    if comparison.labelled and comparison.loss > _HIGH_LOSS:
        problems.append(f"its accuracy is {comparison.loss:.1f} percentage points lower")
    if not problems:
        return []
    worst_layers = several([escape.name(layer, 200) for layer in worst(layers)])
    lost = f"; largest losses: {worst_layers}" if worst_layers else ""
    return [f"the quantized network differs a lot from the float one: {' and '.join(problems)}{lost}"]


def _left_float(model: FloatModel, quantized: Quantized, wanted: Any) -> list[str]:
    """Return a warning about operators that stay float."""
    float_operators = [
        operator.op
        for operator in model.info.operators
        if wanted[operator.index] is not None
        and model.info.tensors[operator.outputs[0]].dtype == "float32"
        and (tensor := quantized.tensor(operator.outputs[0])) is not None
        and tensor.dtype == "float32"
    ]
    if not float_operators:
        return []
    counted = several([f"{count} x {op}" for op, count in sorted(Counter(float_operators).items())])
    return [f"no integer kernels for {counted}: they stay float"]


def _always_zero(model: FloatModel, seen: Any) -> list[str]:
    """Return a warning about tensors that are 0 on all calibration data."""
    named = [
        escape.quoted(model.info.tensors[index].name)
        for index, bounds in seen.items()
        if bounds.low == bounds.high == 0.0
    ]
    return [f"always 0 on the calibration data, so without a range: {several(named)}"] if named else []


# Clip rare values from ranges, so that other values get finer steps. `percentile` keeps that share of a tensor's values
# and cuts half of the rest at each end. `mse` minimizes the mean squared error: step^2 / 12 for each nonzero value
# inside, the squared distance from the end for values outside.
BINS = 16_384
USUAL_PERCENTILE = 99.99
_SHRINK_FACTORS = np.linspace(1.0, 0.02, 99)  # of an end, for `mse`
Counts = npt.NDArray[np.int64]
Clip = Callable[[Range, Counts], Range]


def clipped(seen: Mapping[int, Range], counts: Mapping[int, Counts], clip: Clip) -> dict[int, Range]:
    """Return the ranges of `seen`, clipped with the histograms `counts` of nonzero values."""
    return {
        index: clip(bounds, counts[index]) if bounds.low < bounds.high else bounds for index, bounds in seen.items()
    }


def by_percentile(share: float) -> Clip:
    """Return a function that clips a range so that `share` percent of the values remain."""

    def clip(seen: Range, counts: Counts) -> Range:
        total = int(counts.sum())
        if not total:
            return seen
        edges = np.linspace(seen.low, seen.high, len(counts) + 1)
        below = np.concatenate([[0], np.cumsum(counts)]) / total
        tail = (1 - share / 100) / 2
        low, high = np.interp([tail, 1 - tail], below, edges)
        # Integer ranges always include 0: a range on one side of 0 keeps its other end.
        return Range(float(low) if seen.low < 0 else seen.low, float(high) if seen.high > 0 else seen.high)

    return clip


def by_error(bits: int) -> Clip:
    """Return a function that clips a range's ends for the least squared error in `bits` bits."""

    def clip(seen: Range, counts: Counts) -> Range:
        if not counts.any():
            return seen
        width = (seen.high - seen.low) / len(counts)
        values = seen.low + width * (np.arange(len(counts)) + 0.5)

        def error(low: float, high: float) -> float:
            step = (max(high, 0.0) - min(low, 0.0)) / (2**bits - 1)
            outside = np.maximum(np.maximum(values - high, low - values), 0.0)
            inside = int(counts[outside == 0].sum())
            return float((counts * np.square(outside)).sum() + inside * step**2 / 12)

        high = min((seen.high * shrink for shrink in _SHRINK_FACTORS), key=lambda end: error(seen.low, end))
        high = high if seen.high > 0 else seen.high
        low = min((seen.low * shrink for shrink in _SHRINK_FACTORS), key=lambda end: error(end, high))
        return Range(low if seen.low < 0 else seen.low, high)

    return clip
