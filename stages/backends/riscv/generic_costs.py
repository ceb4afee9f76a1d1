"""Costs of the portable kernels on RISC-V, in instructions."""

from stages.backends.generic.kernels.generic.costs import GenericCosts, ProductCosts

COSTS = {
    32: GenericCosts(
        ProductCosts(4, 2.6, 3.5, 6.8, 45.0, 49.0, 28.0, 28.0, 7.8, 13.0, 32.0, 14.4, 103.0),
        copied_byte=6.0,  # one after the other, as unaligned words trap
        batch_product=4.2,
        deepest_of_four=1024,
    ),
    64: GenericCosts(
        ProductCosts(4, 1.56, 3.5, 6.8, 45.0, 53.0, 51.0, 28.0, 8.0, 13.3, 31.0, 16.1, 101.0),
        copied_byte=6.0,
        batch_product=4.2,
        deepest_of_four=1024,
    ),
}
