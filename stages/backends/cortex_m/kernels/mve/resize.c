/* RESIZE_BILINEAR: interpolates between two rows of the image into a row of 32-bit sums, then between two pixels of that row.
 * Four channels at a time, in tail-predicated low-overhead loops. */
#include "resize.h"

#include <stddef.h>

#include "bytes.h"
#include "resize_image.h"

enum { WHOLE = 1024 };

/* to = first * (1024 - share) + second * share, of `count` > 0 elements. */
MVE_INLINE void between_rows(int32_t *to, const int8_t *first, const int8_t *second, int32_t share, int32_t count)
{
    int32x4_t a, b;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1: vldrb.s32 %q[a], [%[first]], #4\n"
                     "vmul.i32 %q[a], %q[a], %[left]\n"
                     "vldrb.s32 %q[b], [%[second]], #4\n"
                     "vmla.s32 %q[a], %q[b], %[share]\n"
                     "vstrw.32 %q[a], [%[to]], #16\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+l"(to), [first] "+l"(first), [second] "+l"(second), [a] "=&w"(a), [b] "=&w"(b)
                     : [count] "r"(count), [left] "r"(WHOLE - share), [share] "r"(share)
                     : "lr", "memory");
}

/* The same for these sums, in 2^20ths, rounded with halves away from zero: negative sums are lowered by one first. */
MVE_INLINE void between_columns(int8_t *to, const int32_t *first, const int32_t *second, int32_t share, int32_t count)
{
    int32x4_t a, b;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1: vldrw.u32 %q[a], [%[first]], #16\n"
                     "vmul.i32 %q[a], %q[a], %[left]\n"
                     "vldrw.u32 %q[b], [%[second]], #16\n"
                     "vmla.s32 %q[a], %q[b], %[share]\n"
                     "vshr.s32 %q[b], %q[a], #31\n"
                     "vadd.i32 %q[a], %q[a], %q[b]\n"
                     "vrshr.s32 %q[a], %q[a], #20\n"
                     "vstrb.32 %q[a], [%[to]], #4\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+l"(to), [first] "+l"(first), [second] "+l"(second), [a] "=&w"(a), [b] "=&w"(b)
                     : [count] "r"(count), [left] "r"(WHOLE - share), [share] "r"(share)
                     : "lr", "memory");
}

void mve_resize_bilinear_s8(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch,
                            const void *parameters)
{
    const struct fl_resize p = *(const struct fl_resize *)parameters; /* local copy: y may alias it */
    const int32_t line = p.width * p.channels;
    for (const int32_t *const end = rows + 3 * p.out_height; rows != end; rows += 3) {
        between_rows(scratch, x + rows[0] * line, x + rows[1] * line, rows[2], line);
        for (const int32_t *at = columns; at != columns + 3 * p.out_width; at += 3) {
            between_columns(y, scratch + at[0] * p.channels, scratch + at[1] * p.channels, at[2], p.channels);
            y += p.channels;
        }
    }
}
