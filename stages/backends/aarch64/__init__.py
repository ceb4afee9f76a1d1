"""AArch64 Linux programs: run-time code and kernels by extension."""
