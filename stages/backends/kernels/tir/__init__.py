"""TIR building blocks of kernels: fixed-point expressions, tile blocks, strided walks."""
