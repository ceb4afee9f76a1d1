"""Kernels for 64-bit Armv8-A (A64) with base NEON."""

from stages.backends.aarch64.kernels.neon.convolution import Gemm4x4
from stages.backends.aarch64.kernels.neon.depthwise_conv2d import Depthwise, Depthwise3x3, Depthwise3x3Pairs
from stages.backends.aarch64.kernels.neon.elementwise import Add
from stages.backends.aarch64.kernels.neon.matmul import NeonMatmul
from stages.backends.aarch64.kernels.neon.pooling import Pool2d
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(
    __file__,
    kernels=(NeonMatmul, Add, Depthwise, Depthwise3x3, Depthwise3x3Pairs, Gemm4x4, Pool2d),
    needs=("aarch64",),
    needed="needs an Armv8-A core in its 64-bit state",
    condition="defined(__aarch64__)",
)
