"""Run ai-edge-quantizer with given ranges, in a separate process because it prints.

Reads a line of JSON (`stages.ptq.quantizer.request`) and the float model; writes the quantized model to stdout.
"""

import json
import os
import sys
from typing import Any

from stages.support.lazy import np


def main() -> int:
    """Return exit code 0, or 1 with the reason on the last line of stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.readline())
    model = sys.stdin.buffer.read(request["bytes"])
    try:
        result = quantized(model, request)
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    out.write(result)
    out.close()
    return 0


def quantized(model: bytes, request: dict[str, Any]) -> bytes:
    """Return the quantized file. The last rule that matches an operator wins."""
    from ai_edge_quantizer import qtyping, quantizer

    granularity = qtyping.QuantGranularity
    weights = granularity.CHANNELWISE if request["per_channel"] else granularity.TENSORWISE
    all_operators = qtyping.TFLOperationName.ALL_SUPPORTED
    library = quantizer.Quantizer(bytearray(model))
    for rule in request["rules"]:
        if rule["activations"] is None:
            no_quantization = quantizer.AlgorithmName.NO_QUANTIZE
            library.update_quantization_recipe(rule["scope"], all_operators, algorithm_key=no_quantization)
        else:
            library.add_static_config(rule["scope"], all_operators, rule["activations"], rule["weights"], weights)
    calibration = {
        name: {"min": np.full((1,) * rank, low, np.float32), "max": np.full((1,) * rank, high, np.float32)}
        for name, (rank, low, high) in request["ranges"].items()
    }
    result = library.quantize(calibration, enable_progress_report=False, enable_progress_bar=False).quantized_model
    return bytes(result)


if __name__ == "__main__":
    sys.exit(main())
