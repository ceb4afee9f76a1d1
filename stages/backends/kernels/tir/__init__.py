"""Building blocks for the TIR of kernels: fixed-point expressions, tile blocks with their intrinsics, strided walks."""
