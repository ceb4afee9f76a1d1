/* Eight channels at a time: one vector for the products of even channels, one for those of odd channels. */
#include "depthwise16.h"

#include "bytes.h"

#define D16_GROUP 8
#define D16_PIXEL pixel
#include "depthwise16_clipped.h"

/* Adds the products of a row of taps. `load` reads the elements of a tap, after `before`. */
#define ROW(before, load)                                                                                              \
    __asm__ volatile(before "wls lr, %[columns], 2f\n"                                                                 \
                     "1: " load " q0, [%[at]]\n"                                                                       \
                     "vldrb.s16 q1, [%[w]], #8\n"                                                                      \
                     "add %[at], %[at], %[column]\n"                                                                   \
                     "vmullb.s16 q2, q0, q1\n"                                                                         \
                     "vmullt.s16 q3, q0, q1\n"                                                                         \
                     "vadd.i32 %q[even], %q[even], q2\n"                                                               \
                     "vadd.i32 %q[odd], %q[odd], q3\n"                                                                 \
                     "le lr, 1b\n"                                                                                     \
                     "2:"                                                                                              \
                     : [even] "+w"(even), [odd] "+w"(odd), [at] "+r"(at), [w] "+l"(*w)                                 \
                     : [columns] "r"(t.columns), [column] "r"(2 * column), [lanes] "r"(lanes)                          \
                     : "lr", "p0", "q0", "q1", "q2", "q3", "memory")

/* The results of eight channels, or with `some` of those of `lanes`. */
MVE_INLINE int16x8_t results(const int16_t *x, int32_t row, int32_t column, const int8_t **w, const struct s16_channel *of,
                             const struct fl_depthwise16 *p, struct d16_taps t, int some, mve_pred16_t lanes)
{
    const uint32x4_t records = vshlq_n_u32(vidupq_n_u32(0, 8), 2); /* offsets of every other channel */
    const int32_t *const first = (const int32_t *)of, *const second = (const int32_t *)(of + 1);
    int32x4_t even = vldrwq_gather_offset_s32(first, records), odd = vldrwq_gather_offset_s32(second, records);
    for (int32_t ky = 0; ky < t.rows; ky++) {
        const int16_t *at = x;
        if (some) {
            ROW("vmsr p0, %[lanes]\n", "vpst\nvldrht.16");
        } else {
            ROW("", "vldrh.16");
        }
        x += row;
        *w += t.row_gap;
    }
    *w += t.group_gap;
    even = vrmulhq_s32(even, vldrwq_gather_offset_s32(first + 2, records));
    odd = vrmulhq_s32(odd, vldrwq_gather_offset_s32(second + 2, records));
    const int16x8_t y = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
    return vminq_s16(vmaxq_s16(y, vdupq_n_s16((int16_t)p->low)), vdupq_n_s16((int16_t)p->high));
}

MVE_INLINE void pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                      const struct fl_depthwise16 *p, struct d16_taps t)
{
    for (int32_t left = p->channels - t.rest; left > 0; left -= 8) {
        vst1q_s16(y, results(x, row, column, &w, of, p, t, 0, 0));
        x += 8;
        y += 8;
        of += 8;
    }
    if (t.rest > 0) {
        const mve_pred16_t lanes = vctp16q((uint32_t)t.rest);
        vst1q_p_s16(y, results(x, row, column, &w, of, p, t, 1, lanes), lanes);
    }
}

void mve_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, const void *parameters)
{
    d16_image(x, w, channels, y, parameters);
}
