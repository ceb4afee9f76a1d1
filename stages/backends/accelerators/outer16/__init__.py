"""outer16, an int8 matrix engine for NCHW16c images.

It multiplies 16 pixels by 16 channels in each cycle.
"""

from stages.backends.kernels.folder import KernelFolder

from .descriptor import Outer16

FOLDER = KernelFolder(__file__, kernels=())
ACCELERATOR = Outer16
