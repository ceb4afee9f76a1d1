"""From the integer graph to C: simplification, memory planning, code generation, offloading."""
