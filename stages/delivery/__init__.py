"""Packages after the chain: export into other build systems, and benchmarks of layers."""
