"""Kernels for Cortex-M cores with Helium, the vectors of Armv8.1-M (MVE, integer)."""

from stages.kernels.mve.add import Add
from stages.kernels.mve.depthwise import Depthwise, Depthwise3x3
from stages.kernels.mve.gemm import Conv2d, FullyConnected
from stages.kernels.mve.pooling import Pool2d

__all__ = ["Add", "Conv2d", "Depthwise", "Depthwise3x3", "FullyConnected", "Pool2d"]
