"""Kernels for RISC-V cores with the packed-SIMD extension P, RV64 and RV32.

They call operations by name, which rvp_operations.h maps to the instructions of the core's draft of P.
"""

from collections.abc import Mapping

from stages.backends.kernels.folder import KernelFolder
from stages.backends.riscv.instructions.declaration import versions
from stages.backends.riscv.instructions.kernel_headers import kernel_headers
from stages.backends.riscv.kernels.rvp import log_mel, signal
from stages.backends.riscv.kernels.rvp.add import Add
from stages.backends.riscv.kernels.rvp.average_lines import AveragePoolLines
from stages.backends.riscv.kernels.rvp.convolution import Conv2d, FullyConnected
from stages.backends.riscv.kernels.rvp.depthwise_conv2d import DepthwiseConv2d
from stages.backends.riscv.kernels.rvp.depthwise_planes import DepthwisePlanes
from stages.backends.riscv.kernels.rvp.depthwise_taps import DepthwiseTaps
from stages.backends.riscv.kernels.rvp.depthwise_window import DepthwiseWindow
from stages.backends.riscv.kernels.rvp.direct_conv2d import DirectConv2d
from stages.backends.riscv.kernels.rvp.few_inputs import FewInputs
from stages.backends.riscv.kernels.rvp.few_outputs import FewOutputs
from stages.backends.riscv.kernels.rvp.fully_connected import FullyConnectedRows
from stages.backends.riscv.kernels.rvp.matmul import RvpMatmul
from stages.backends.riscv.kernels.rvp.mean import Mean
from stages.backends.riscv.kernels.rvp.movement import Concatenation, Move, Slide, Variable
from stages.backends.riscv.kernels.rvp.mul import Mul
from stages.backends.riscv.kernels.rvp.pointwise import Pointwise
from stages.backends.riscv.kernels.rvp.pool_lines import MaxPoolLines
from stages.backends.riscv.kernels.rvp.pooling import Pool2d
from stages.backends.riscv.kernels.rvp.prelu import Prelu
from stages.backends.riscv.kernels.rvp.quads import Quads
from stages.backends.riscv.kernels.rvp.shared_kernels import RvpDepthwise16, RvpLstm, RvpProducts16, RvpResize, RvpSvdf
from stages.backends.targets.spec import Core

_DRAFTS = versions("rvp")


def _headers(core: Core) -> Mapping[str, str]:
    pairs = core.word_bits == 32 and "zilsd" in core.extensions
    return kernel_headers("rvp", core.extensions["rvp"], core.word_bits, loads_pairs=pairs)


FOLDER = KernelFolder(
    __file__,
    kernels=(
        RvpMatmul,
        Add,
        AveragePoolLines,
        Concatenation,
        Conv2d,
        DepthwiseConv2d,
        DepthwisePlanes,
        DepthwiseTaps,
        DepthwiseWindow,
        DirectConv2d,
        FewInputs,
        FewOutputs,
        FullyConnected,
        FullyConnectedRows,
        RvpLstm,
        MaxPoolLines,
        Mean,
        Move,
        Mul,
        Pointwise,
        Pool2d,
        Prelu,
        Quads,
        RvpDepthwise16,
        RvpProducts16,
        RvpResize,
        RvpSvdf,
        Slide,
        Variable,
        *log_mel.KERNELS,
        *signal.KERNELS,
    ),
    needs=(tuple(f"rvp {draft}" for draft in _DRAFTS),),
    uses=("zilsd",),
    needed=f"needs the P extension, draft {' or '.join(_DRAFTS)}",
    condition="defined(__riscv_xlen) && __riscv_xlen == {word_bits}",
    generate_for_core=_headers,
)
