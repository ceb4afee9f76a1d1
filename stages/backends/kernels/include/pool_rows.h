/* Shared by all families: pooling by rows.
 *
 * First the rows of a window that are inside the image are reduced to a line in scratch. Then the columns of the line are reduced
 * to the pixels of the output:
 *
 *     line   | left * channels | width * channels | overhang of the last windows |    padding has no effect on results
 *
 * So a window of k x k elements takes 2 * k steps instead of k * k, whether windows overlap or not. Before it
 * includes this file, a family defines these functions:
 *
 *   pool_maxima    to[i] = the maximum of from[i + k * step] for k < taps, i < count: bytes; `count`, `taps` > 0
 *   pool_sums      to[i] = the sum of these, in 16 bits
 *   pool_strided   the maximum of `taps` pixels of the line, for each pixel of a row of the output
 *   pool_mean_of   the `struct pool_mean` for windows with a given number of elements
 *   pool_means     y[i] = the mean of line[i + k * channels] for k < kernel_width, by a struct pool_mean; i < count; bytes
 *   pool_clip      clips `count` bytes to p->low ... p->high
 */
#pragma once

#include <stdint.h>
#include <string.h>

/* `line` is its elements; low and high clip. */
struct fl_pool_rows {
    int32_t height, width, channels, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_y, stride_x, top, left, low, high;
    int32_t line;
};

/* One NHWC image; averages are of at most 255 elements, halves go away from zero. */
typedef void fl_pool_by_rows(const void *x, void *y, void *line, const int32_t *fields);
