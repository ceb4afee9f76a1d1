"""outer16, an int8 matrix engine on images in NCHW16c: 16 pixels by 16 channels, a product of both in each cycle."""

from stages.backends.kernels.folder import KernelFolder

from .descriptor import Outer16

FOLDER = KernelFolder(__file__, kernels=())
ACCELERATOR = Outer16
