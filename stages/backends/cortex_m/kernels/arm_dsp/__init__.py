"""Kernels for Cortex-M cores with the DSP extension: M4, M7, M33 and later."""

from stages.backends.cortex_m.kernels.arm_dsp import signal
from stages.backends.cortex_m.kernels.arm_dsp.add import Add
from stages.backends.cortex_m.kernels.arm_dsp.convolution import Conv2d
from stages.backends.cortex_m.kernels.arm_dsp.depthwise import (
    DepthwiseConv2d,
    DepthwiseConv2dChannels,
    DepthwiseConv2dRows,
)
from stages.backends.cortex_m.kernels.arm_dsp.extremum import Extremum, Extremum16
from stages.backends.cortex_m.kernels.arm_dsp.few import FewChannels
from stages.backends.cortex_m.kernels.arm_dsp.fully_connected import FullyConnected
from stages.backends.cortex_m.kernels.arm_dsp.mean import Mean
from stages.backends.cortex_m.kernels.arm_dsp.movement import Concatenation, Move, Slide, Variable
from stages.backends.cortex_m.kernels.arm_dsp.mul import Mul
from stages.backends.cortex_m.kernels.arm_dsp.one_input import OneInput
from stages.backends.cortex_m.kernels.arm_dsp.pool import Pool2d, Pool2d16
from stages.backends.cortex_m.kernels.arm_dsp.prelu import Prelu
from stages.backends.cortex_m.kernels.arm_dsp.shared_kernels import (
    ArmDepthwise16,
    ArmLstm,
    ArmMatmul,
    ArmPoolRows,
    ArmProducts16,
    ArmResize,
    ArmSoftmax16,
    ArmSvdf,
    Table,
)
from stages.backends.cortex_m.kernels.arm_dsp.transpose import Transpose
from stages.backends.cortex_m.kernels.arm_dsp.twos import Twos
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(
    __file__,
    kernels=(
        ArmMatmul,
        Add,
        ArmDepthwise16,
        ArmPoolRows,
        ArmProducts16,
        ArmResize,
        ArmSoftmax16,
        ArmSvdf,
        Concatenation,
        Conv2d,
        DepthwiseConv2d,
        DepthwiseConv2dChannels,
        DepthwiseConv2dRows,
        Extremum,
        Extremum16,
        FewChannels,
        FullyConnected,
        ArmLstm,
        Mean,
        Move,
        Mul,
        OneInput,
        Pool2d,
        Pool2d16,
        Prelu,
        Slide,
        Table,
        Transpose,
        Twos,
        Variable,
        *signal.KERNELS,
    ),
    needs=(("armv7e-m", "dsp", "mve", "mve.fp"),),  # MVE includes it
    needed="needs Thumb with the DSP extension",
    condition="defined(__ARM_FEATURE_DSP)",
)
