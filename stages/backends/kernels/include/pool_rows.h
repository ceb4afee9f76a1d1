/* Pooling by rows: what the kernels of all families share.
 *
 * The rows of a window that lie in the image are reduced to a line in scratch, then its columns to the pixels of the output:
 *
 *     line   | left * channels | width * channels | what windows reach beyond that |    with pads that count nothing
 *
 * So a window of k x k elements takes 2 * k instead of k * k, whether windows overlap or not. A family has the C of these before
 * it includes this:
 *
 *   pool_maxima    to[i] = the largest of from[i + k * step] for k < taps, i < count: bytes; `count`, `taps` > 0
 *   pool_sums      to[i] = the sum of these, as halves
 *   pool_strided   the largest of `taps` pixels of the line for each pixel of a row of the output
 *   pool_mean_of   a `struct pool_mean` for windows of so many elements
 *   pool_means     y[i] = the mean of line[i + k * channels] for k < kernel_width by it, i < count; bytes
 *   pool_clip      `count` bytes between p->low and p->high
 */
#ifndef FIRMLINE_POOL_ROWS_H
#define FIRMLINE_POOL_ROWS_H

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

#endif
