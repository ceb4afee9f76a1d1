"""Kernels for Cortex-M cores with Helium, the vectors of Armv8.1-M (MVE, integer)."""

from stages.kernels.folder import KernelFolder
from stages.kernels.mve.depthwise import Depthwise, Depthwise3x3
from stages.kernels.mve.depthwise16 import MveDepthwise16
from stages.kernels.mve.elementwise import Add, Mul
from stages.kernels.mve.gemm import Conv2d, FullyConnected
from stages.kernels.mve.lstm import MveLstm
from stages.kernels.mve.matmul import MveMatmul
from stages.kernels.mve.mean import Mean
from stages.kernels.mve.movement import Move
from stages.kernels.mve.pool_rows import MvePoolRows
from stages.kernels.mve.pooling import Pool2d
from stages.kernels.mve.prelu import MvePrelu
from stages.kernels.mve.products16 import MveProducts16
from stages.kernels.mve.resize import MveResize
from stages.kernels.mve.softmax import Softmax
from stages.kernels.mve.svdf import MveSvdf
from stages.kernels.mve.table import Table
from stages.kernels.mve.taps import DepthwiseTaps
from stages.kernels.mve.whole import DepthwiseWhole

FOLDER = KernelFolder(
    __file__,
    kernels=(
        MveMatmul,
        Add,
        Conv2d,
        Depthwise,
        Depthwise3x3,
        DepthwiseTaps,
        DepthwiseWhole,
        FullyConnected,
        MveLstm,
        Mean,
        Move,
        Mul,
        MveDepthwise16,
        MvePrelu,
        MveProducts16,
        MvePoolRows,
        MveResize,
        MveSvdf,
        Pool2d,
        Softmax,
        Table,
    ),
    needs=(("mve", "mve.fp"),),
    needed="needs Armv8.1-M with MVE",
    condition="defined(__ARM_FEATURE_MVE)",
)
