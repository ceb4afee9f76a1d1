/* 8-bit values of NE16's 32-bit sums, rounded as TFLite does, by the core. */
#ifndef NE16_SUMS_H
#define NE16_SUMS_H

#include <stdint.h>

/* bias has the biases of all channels, then their multipliers; bounds are zero point, minimum and maximum of the values.
 * Values of a pixel lie `stride` bytes behind those of the one before. */
void ne16_requantize_double(const void *sums, void *values, const void *bias, const void *shifts, const void *bounds,
                            int32_t pixels, int32_t channels, int32_t stride);
void ne16_requantize_single(const void *sums, void *values, const void *bias, const void *shifts, const void *bounds,
                            int32_t pixels, int32_t channels, int32_t stride);

#endif
