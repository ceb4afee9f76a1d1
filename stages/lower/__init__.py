"""From the integer graph to C: simplification, memory, code generation, offloading."""
