"""Kernels for Cortex-M cores with the DSP extension: M4, M7, M33 and later."""

from stages.kernels.arm_dsp.add import Add
from stages.kernels.arm_dsp.convolution import Conv2d
from stages.kernels.arm_dsp.depthwise import DepthwiseConv2d, DepthwiseConv2dAny
from stages.kernels.arm_dsp.fully_connected import FullyConnected
from stages.kernels.arm_dsp.pool import AveragePool

__all__ = ["Add", "AveragePool", "Conv2d", "DepthwiseConv2d", "DepthwiseConv2dAny", "FullyConnected"]
