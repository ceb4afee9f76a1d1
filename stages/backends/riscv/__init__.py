"""RISC-V: run-time code, kernels by extension, Spike, decoding for the timing model."""
