"""Tiles: micro-kernels that are generated from one declaration per operator.

`program.py`         assembly programs with named registers, loops and register allocation
`matrix_product.py`  the tile of convolutions and fully connected layers
`product_*.py`       its kernel: sizes, constants, and the layer in TIR

An instruction set supplies the steps of a tile (loads, multiply-accumulate, requantization); the tile supplies the
loops, the blocking and the addresses.
"""
