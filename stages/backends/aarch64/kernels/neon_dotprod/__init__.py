"""Kernels for Armv8.2-A with the dot-product instructions (FEAT_DotProd)."""

from stages.backends.aarch64.kernels.neon_dotprod.convolution import Hybrid4x16, Interleaved8x12
from stages.backends.aarch64.kernels.neon_dotprod.depthwise_conv2d import Depthwise3x3
from stages.backends.aarch64.kernels.neon_dotprod.matmul import DotprodMatmul
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(
    __file__,
    kernels=(DotprodMatmul, Depthwise3x3, Hybrid4x16, Interleaved8x12),
    needs=("aarch64", "dotprod"),
    needed="needs the dot-product instructions of Armv8.2-A",
    condition="defined(__ARM_FEATURE_DOTPROD)",
)
