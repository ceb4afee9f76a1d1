"""Arm Cortex-M: run-time code, kernels by extension, decoding for the timing model."""
