"""Kernels in portable C for every operator: what runs where nothing better is there, and a yardstick for others."""

from stages.kernels.folder import KernelFolder
from stages.kernels.generic.convolution import Conv2d, FullyConnected
from stages.kernels.generic.depthwise import DepthwiseConv2d
from stages.kernels.generic.elementwise import Add, Dequantize, Mul, Quantize, Requantize, Table
from stages.kernels.generic.movement import Concatenation, Move
from stages.kernels.generic.pooling import Pool2d
from stages.kernels.generic.reduction import L2Normalization, Mean, Softmax

FOLDER = KernelFolder(
    __file__,
    kernels=(
        Add,
        Concatenation,
        Conv2d,
        DepthwiseConv2d,
        Dequantize,
        FullyConnected,
        L2Normalization,
        Mean,
        Move,
        Mul,
        Pool2d,
        Quantize,
        Requantize,
        Softmax,
        Table,
    ),
)
