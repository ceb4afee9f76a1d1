"""Networks: model files, operators, integer graph, arithmetic, reference interpreters."""
