/* A register of channels at a time: four on RV64, two on RV32. KMABB adds the products of even channels to 32-bit lanes, KMATT
 * those of odd channels. A register of weights has two neighbouring taps of a row of the window.
 */
#include "depthwise16.h"

#include "rvp_intrinsics.h"

enum { GROUP = RVP_WORD_BYTES / 2 };

#define D16_GROUP GROUP
#define D16_PIXEL pixel
#define D16_COPY copy
#define D16_ZERO zero
#if __riscv_xlen == 64
#define D16_PIXEL_IN_PLACE pixel_by_lanes
#define D16_IS_IN_PLACE(channels) ((channels) % 2 == 0)
#endif
#define S16_HIGH(t, high) ((int32_t)rvp_smmul_u((rvp_word)(t), (rvp_word)(high)))

/* The panel begins at a register. An image does so if its channels are whole groups; otherwise only some of its pixels do. On RV64
 * some pixels begin at a lane.
 */
RVP_INLINE void copy(int16_t *to, const int16_t *from, int32_t count)
{
    if (count > 0 && ((uintptr_t)from & (RVP_WORD_BYTES - 1)) != 0) {
        if (((uintptr_t)from & 3) == 0) {
            for (; count > 0; count -= GROUP) {
                rvp_store_lane(to, rvp_load_lane(from));
                rvp_store_lane(to + 2, rvp_load_lane(from + 2));
                to += GROUP;
                from += GROUP;
            }
        }
        for (; count > 0; count--) {
            *to++ = *from++;
        }
    }
    for (; count >= 4 * GROUP; count -= 4 * GROUP) {
#pragma GCC unroll 4
        for (int32_t k = 0; k < 4 * GROUP; k += GROUP) {
            rvp_store(to + k, rvp_load(from + k));
        }
        to += 4 * GROUP;
        from += 4 * GROUP;
    }
    for (; count > 0; count -= GROUP) {
        rvp_store(to, rvp_load(from));
        to += GROUP;
        from += GROUP;
    }
}

RVP_INLINE void zero(int16_t *to, int32_t count)
{
    for (; count > 0; count -= GROUP) {
        rvp_store(to, 0);
        to += GROUP;
    }
}

#include "depthwise16_image.h"

/* The bias of a group's first channel, or its second, in each lane. */
RVP_INLINE rvp_word biases(const struct s16_channel *of)
{
#if __riscv_xlen == 64
    return rvp_pack((rvp_word)(uint32_t)of[0].bias, (rvp_word)(uint32_t)of[2].bias);
#else
    return (rvp_word)of[0].bias;
#endif
}

/* Results of every other channel; `left` channels are left. */
RVP_INLINE void put(int16_t *y, rvp_word sums, const struct s16_channel *of, int32_t left, const struct fl_depthwise16 *p)
{
    if (left > 0) {
        y[0] = (int16_t)s16_clamp(S16_HIGH(sums, of[0].high), p->low, p->high);
    }
#if __riscv_xlen == 64
    if (left > 2) {
        y[2] = (int16_t)s16_clamp(S16_HIGH(sums >> 32, of[2].high), p->low, p->high);
    }
#endif
}

/* A group: whole, or as two lanes whose channels are `apart` channels apart. */
RVP_INLINE rvp_word group_at(const int16_t *at, int32_t apart, int by_lanes)
{
    return by_lanes ? rvp_pack(rvp_load_lane(at), rvp_load_lane(at + apart)) : rvp_load(at);
}

RVP_INLINE void groups(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                       const struct fl_depthwise16 *p, int32_t height, int32_t width, int by_lanes)
{
    for (int32_t left = p->channels; left > 0; left -= GROUP) {
        const int32_t apart = left > 2 ? 2 : 0;
        rvp_word even = biases(of), odd = biases(of + 1);
        const int16_t *line = x;
        for (int32_t ky = 0; ky < height; ky++) {
            const int16_t *at = line;
#pragma GCC unroll 2
            for (int32_t kx = 0; kx < width; kx += 2) {
                const rvp_word weights = rvp_load(w), first = rvp_sunpkd820(weights), value = group_at(at, apart, by_lanes);
                even = rvp_kmabb(even, value, first);
                odd = rvp_kmatt(odd, value, first);
                at += column;
                if (kx + 1 < width) {
                    const rvp_word second = rvp_sunpkd831(weights), next = group_at(at, apart, by_lanes);
                    even = rvp_kmabb(even, next, second);
                    odd = rvp_kmatt(odd, next, second);
                    at += column;
                }
                w += RVP_WORD_BYTES;
            }
            line += row;
        }
        put(y, even, of, left, p);
        put(y + 1, odd, of + 1, left - 1, p);
        x += GROUP;
        y += GROUP;
        of += GROUP;
    }
}

RVP_INLINE void pixel(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of, int16_t *y,
                      const struct fl_depthwise16 *p, int32_t height, int32_t width)
{
    groups(x, row, column, w, of, y, p, height, width, 0);
}

#if __riscv_xlen == 64
/* Even channels, at multiples of a lane. */
RVP_INLINE void pixel_by_lanes(const int16_t *x, int32_t row, int32_t column, const int8_t *w, const struct s16_channel *of,
                               int16_t *y, const struct fl_depthwise16 *p, int32_t height, int32_t width)
{
    groups(x, row, column, w, of, y, p, height, width, 1);
}
#endif

void rvp_depthwise16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int16_t *panel, const void *parameters)
{
    d16_image(x, w, channels, y, panel, parameters);
}
