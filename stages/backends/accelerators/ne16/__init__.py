"""NE16, the convolution engine of GAP9 and PULP clusters.

8-bit activations, weights of 2 to 8 bits, results in HWC.
"""

from stages.backends.accelerators.ne16.descriptor import Ne16
from stages.backends.kernels.folder import KernelFolder

FOLDER = KernelFolder(__file__, kernels=(), include=("../rvp",))
ACCELERATOR = Ne16
