"""Kernels for Armv8.2-A with the 8-bit matrix product (FEAT_I8MM)."""

from stages.backends.aarch64.kernels.neon_i8mm.convolution import Interleaved8x12
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(
    __file__,
    kernels=(Interleaved8x12,),
    needs=("aarch64", "i8mm"),
    needed="needs the 8-bit matrix product of Armv8.2-A (i8mm)",
    condition="defined(__ARM_FEATURE_MATMUL_INT8)",
)
