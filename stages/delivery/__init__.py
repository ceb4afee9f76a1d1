"""Packages after the stages: export into other build systems, and benchmarks of layers."""
