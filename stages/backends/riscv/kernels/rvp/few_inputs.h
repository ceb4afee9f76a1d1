/* Unpacks windows of few bytes into registers for pointwise_s8.S. */
#pragma once

#include <stdint.h>

/* Both write `count` panels of one row each (panel.h): a register for each chunk of four activations, which lie in every
 * 32-bit lane. Bytes after the end of a run are arbitrary: their weights are 0.
 *
 * Rows of a matrix: row r is at x + r * depth, `depth` bytes, which are one run.
 */
void rvp_few_inputs_rows(int32_t *panels, const void *x, int count, int depth);

/* Windows of the output pixels from `first` on, in an NHWC image. `geometry` is a struct rvp_geometry. */
void rvp_few_inputs_windows(int32_t *panels, const void *image, int first, int count, const int32_t *geometry);
