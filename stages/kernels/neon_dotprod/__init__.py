"""Kernels for Armv8.2-A with the dot-product instructions (FEAT_DotProd)."""

from stages.kernels.neon_dotprod.convolution import Hybrid4x16, Interleaved8x12
from stages.kernels.neon_dotprod.depthwise_conv2d import Depthwise3x3

__all__ = ["Depthwise3x3", "Hybrid4x16", "Interleaved8x12"]
