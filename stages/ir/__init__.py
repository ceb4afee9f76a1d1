"""Networks: model files, operators, the integer graph, its arithmetic, and reference interpreters."""
