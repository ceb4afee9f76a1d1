/* RESIZE_BILINEAR: interpolates between two rows of the image into a row of 32-bit sums, then between two pixels of that row. */
#include "resize_image.h"
#include "row_vectors.h"
#include "rows.h"

enum { WHOLE = 1024, FEW = 32 }; /* FEW: channels below which vectors are along pixels */

void rvv_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                            const void *parameters)
{
    const struct fl_resize p = *(const struct fl_resize *)parameters; /* local copy: y may alias it */
    const int32_t line = p.width * p.channels;
    for (const int32_t *const end = rows + 3 * p.out_height; rows != end; rows += 3) {
        rvv_between_rows(scratch, x + rows[0] * line, x + rows[1] * line, line, WHOLE - rows[2], rows[2]);
        if (p.channels < FEW) {
            rvv_between_pixels(y, scratch, columns, p.out_width, p.channels);
            y += p.out_width * p.channels;
            continue;
        }
        for (const int32_t *at = columns; at != columns + 3 * p.out_width; at += 3) {
            rvv_between_columns(y, scratch + at[0] * p.channels, scratch + at[1] * p.channels, p.channels, WHOLE - at[2], at[2]);
            y += p.channels;
        }
    }
}
