"""Kernels for Cortex-M cores with Helium (Armv8.1-M MVE, integer vectors)."""

from stages.backends.cortex_m.kernels.mve import log_mel, product_program, signal
from stages.backends.cortex_m.kernels.mve.depthwise import Depthwise, Depthwise3x3
from stages.backends.cortex_m.kernels.mve.elementwise import Add, Add16, Mul, Mul16
from stages.backends.cortex_m.kernels.mve.extremum import Extremum, Extremum16
from stages.backends.cortex_m.kernels.mve.gemm import Conv2d, Conv2dInPlace, FullyConnected
from stages.backends.cortex_m.kernels.mve.matmul import MveMatmul
from stages.backends.cortex_m.kernels.mve.mean import Mean
from stages.backends.cortex_m.kernels.mve.movement import Move
from stages.backends.cortex_m.kernels.mve.pooling import Pool2d, Pool2d16
from stages.backends.cortex_m.kernels.mve.prelu import MvePrelu
from stages.backends.cortex_m.kernels.mve.shared_kernels import (
    MveDepthwise16,
    MveLstm,
    MvePoolRows,
    MveProducts16,
    MveResize,
    MveRowSums,
    MveSoftmax16,
    MveSvdf,
    Softmax,
    Table,
)
from stages.backends.cortex_m.kernels.mve.taps import DepthwiseTaps
from stages.backends.cortex_m.kernels.mve.whole import DepthwiseWhole
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(
    __file__,
    kernels=(
        MveMatmul,
        Add,
        Add16,
        Conv2d,
        Conv2dInPlace,
        Depthwise,
        Depthwise3x3,
        DepthwiseTaps,
        DepthwiseWhole,
        Extremum,
        Extremum16,
        FullyConnected,
        MveLstm,
        Mean,
        Move,
        Mul,
        Mul16,
        MveDepthwise16,
        MvePrelu,
        MveProducts16,
        MvePoolRows,
        MveResize,
        MveSoftmax16,
        MveSvdf,
        Pool2d,
        Pool2d16,
        Softmax,
        Table,
        *log_mel.KERNELS,
        *signal.KERNELS,
    ),
    sums=(MveRowSums,),
    needs=(("mve", "mve.fp"),),
    needed="needs Armv8.1-M with MVE",
    condition="defined(__ARM_FEATURE_MVE)",
    generate=product_program.generate,
)
