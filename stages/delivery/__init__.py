"""After the chain: exports into other build systems, and benchmarks of layers."""
