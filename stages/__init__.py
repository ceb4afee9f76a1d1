"""The nine stages, one package each, and what they share (graph, kernels, targets, simulators, models)."""
