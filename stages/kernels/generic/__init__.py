"""Kernels in portable C for every operator: what runs where nothing better is there, and a yardstick for others."""

from stages.kernels.folder import KernelFolder
from stages.kernels.generic import (
    choices,
    convolution,
    depthwise,
    division16,
    elementwise,
    even,
    functions16,
    interpolation,
    lstm,
    matmul,
    movement,
    picking,
    pooling,
    reduction,
    root16,
    sixteen,
    stepped,
    svdf,
    variables,
)

FOLDER = KernelFolder(
    __file__,
    kernels=(
        *choices.KERNELS,
        *convolution.KERNELS,
        *sixteen.KERNELS,
        *stepped.KERNELS,
        *depthwise.KERNELS,
        *division16.KERNELS,
        *elementwise.KERNELS,
        *even.KERNELS,
        *functions16.KERNELS,
        *interpolation.KERNELS,
        *lstm.KERNELS,
        *matmul.KERNELS,
        *movement.KERNELS,
        *picking.KERNELS,
        *pooling.KERNELS,
        *reduction.KERNELS,
        *root16.KERNELS,
        *svdf.KERNELS,
        *variables.KERNELS,
    ),
)
