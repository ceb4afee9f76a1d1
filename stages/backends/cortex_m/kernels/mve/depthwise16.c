/* Eight channels at a time: one vector for the products of even channels, one for those of odd channels. */
#include "depthwise16.h"

#include "bytes.h"

#define D16_GROUP 8
#define D16_PIXEL pixel
#define D16_COPY(to, from, count) mve_copy((uint8_t *)(to), (const uint8_t *)(from), 2 * (count))
#define D16_ZERO(to, count) mve_set((uint8_t *)(to), 2 * (count), vdupq_n_u8(0))
#include "depthwise16_image.h"

MVE_INLINE void pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                      const struct fl_depthwise16 *p, int32_t height, int32_t width)
{
    const uint32x4_t records = vshlq_n_u32(vidupq_n_u32(0, 8), 2); /* offsets of every other channel */
    for (int32_t left = p->channels; left > 0; left -= 8) {
        const int32_t *const first = (const int32_t *)of, *const second = (const int32_t *)(of + 1);
        int32x4_t even = vldrwq_gather_offset_s32(first, records), odd = vldrwq_gather_offset_s32(second, records);
        const int16_t *line = x;
        for (int32_t ky = 0; ky < height; ky++) {
            const int16_t *at = line;
            __asm__ volatile("dls lr, %[width]\n"
                             "1: vldrh.16 q0, [%[at]]\n"
                             "vldrb.s16 q1, [%[w]], #8\n"
                             "add %[at], %[at], %[column]\n"
                             "vmullb.s16 q2, q0, q1\n"
                             "vmullt.s16 q3, q0, q1\n"
                             "vadd.i32 %q[even], %q[even], q2\n"
                             "vadd.i32 %q[odd], %q[odd], q3\n"
                             "le lr, 1b"
                             : [even] "+w"(even), [odd] "+w"(odd), [at] "+r"(at), [w] "+l"(w)
                             : [width] "r"(width), [column] "r"(2 * column)
                             : "lr", "q0", "q1", "q2", "q3", "memory");
            line += row;
        }
        even = vrmulhq_s32(even, vldrwq_gather_offset_s32(first + 2, records));
        odd = vrmulhq_s32(odd, vldrwq_gather_offset_s32(second + 2, records));
        int16x8_t results = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
        results = vminq_s16(vmaxq_s16(results, vdupq_n_s16((int16_t)p->low)), vdupq_n_s16((int16_t)p->high));
        vst1q_p_s16(y, results, vctp16q((uint32_t)left));
        x += 8;
        y += 8;
        of += 8;
    }
}

void mve_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int16_t *panel, const void *parameters)
{
    d16_image(x, w, channels, y, panel, parameters);
}
