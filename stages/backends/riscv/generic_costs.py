"""Costs of the portable kernels on RISC-V, in instructions."""

from dataclasses import replace

from stages.backends.generic.kernels.generic.costs import CopyCosts, GenericCosts, ProductCosts

# memcpy copies byte by byte, as unaligned words trap. The compiler unrolls loops over few neighbours.
_NARROW = CopyCosts(
    layer=35.0,
    call=25.0,
    row=13.0,
    four=13.0,
    word=5.0,
    memcpy=11.0,
    byte=6.0,
    loop=3.6,
    near=2.0,
    unrolled=12,
    fill=4.0,
)
COSTS = {
    32: GenericCosts(
        ProductCosts(4, 2.6, 3.5, 6.8, 45.0, 49.0, 28.0, 28.0, 7.8, 13.0, 32.0, 14.4, 103.0),
        _NARROW,
        batch_product=4.2,
        deepest_of_four=1024,
    ),
    64: GenericCosts(
        ProductCosts(4, 1.56, 3.5, 6.8, 45.0, 53.0, 51.0, 28.0, 8.0, 13.3, 31.0, 16.1, 101.0),
        replace(_NARROW, four=10.0, word=6.0),
        batch_product=4.2,
        deepest_of_four=1024,
    ),
}
