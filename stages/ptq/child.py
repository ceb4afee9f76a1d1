"""Quantizes in a process of its own, as the library writes to the terminal: ai-edge-quantizer, by given ranges.

Reads a line of JSON (`stages.ptq.quantizer.request`) and the float model, writes the quantized one to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> int:
    """Exit code 0, or 1 and the reason on stderr's last line."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.readline())
    model = sys.stdin.buffer.read(request["bytes"])
    try:
        made = quantized(model, request)
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    out.write(made)
    out.close()
    return 0


def quantized(model: bytes, request: dict[str, Any]) -> bytes:
    """The quantized file; rules in the request's order, of which the last that fits an operator counts."""
    import numpy as np
    from ai_edge_quantizer import qtyping, quantizer

    granularity = qtyping.QuantGranularity
    weights = granularity.CHANNELWISE if request["per_channel"] else granularity.TENSORWISE
    everything = qtyping.TFLOperationName.ALL_SUPPORTED
    work = quantizer.Quantizer(bytearray(model))
    for rule in request["rules"]:
        if rule["activations"] is None:
            none = quantizer.AlgorithmName.NO_QUANTIZE
            work.update_quantization_recipe(rule["scope"], everything, algorithm_key=none)
        else:
            work.add_static_config(rule["scope"], everything, rule["activations"], rule["weights"], weights)
    seen = {
        name: {"min": np.full((1,) * rank, low, np.float32), "max": np.full((1,) * rank, high, np.float32)}
        for name, (rank, low, high) in request["ranges"].items()
    }
    made = work.quantize(seen, enable_progress_report=False, enable_progress_bar=False).quantized_model
    return bytes(made)


if __name__ == "__main__":
    sys.exit(main())
