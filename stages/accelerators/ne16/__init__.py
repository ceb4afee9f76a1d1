"""NE16, the convolution engine of GAP9 and PULP clusters: 8-bit activations, weights of 2 to 8 bits, results in HWC."""
