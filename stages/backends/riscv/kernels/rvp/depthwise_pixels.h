/* Transposes four neighbouring columns of an NHWC image, so that the four bytes of a channel are in one 32-bit lane, and back.
 */
#pragma once

#include <stddef.h>

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* Transposes the 4x4 bytes of each lane: byte i of word j becomes byte j of word i. */
RVP_INLINE void transpose(rvp_word *a, rvp_word *b, rvp_word *c, rvp_word *d)
{
    const rvp_word even = (rvp_word)0x00ff00ff00ff00ffu;
    const rvp_word ab02 = rvp_select_bits(even, *a, *b << 8), ab13 = rvp_select_bits(even, *a >> 8, *b);
    const rvp_word cd02 = rvp_select_bits(even, *c, *d << 8), cd13 = rvp_select_bits(even, *c >> 8, *d);
    *a = rvp_pkbb16(cd02, ab02);
    *b = rvp_pkbb16(cd13, ab13);
    *c = rvp_pktt16(cd02, ab02);
    *d = rvp_pktt16(cd13, ab13);
}

/* How the channels of a group lie in memory: WHOLE as aligned registers, LANES as aligned lanes (RV64), BYTES anywhere.
 * REPEATED: each input channel feeds several output channels, ONE_REPEATED: a single input channel feeds all. FEW is a variant
 * of functions: BYTES with fewer channels than a register (when reading, fewer than four).
 */
enum how { WHOLE, LANES, BYTES, REPEATED, ONE_REPEATED, FEW };

/* The channels of a group. If they are REPEATED, each of `sources` input channels is multiplied by a mask, which has a 1 in
 * each byte that gets this channel.
 */
struct pixels {
    enum how how;
    int bytes;
    rvp_word flip, mask;
    const int8_t *masks;
    int sources;
};

RVP_INLINE rvp_word load_pixel(const int8_t *p, const struct pixels *v, enum how how)
{
    if (how == WHOLE) {
        return rvp_load(p);
    }
    if (how == LANES) {
        return rvp_pack(rvp_load_lane(p), rvp_load_lane(p + v->bytes - 4));
    }
    if (how == BYTES) {
        /* A register joined from two; shifting by one and then by the rest gives 0 if one register is enough. */
        const uintptr_t address = (uintptr_t)p, last = address + (uintptr_t)v->bytes - 1;
        const rvp_word low = rvp_load((const void *)(address & -(uintptr_t)W));
        const rvp_word high = rvp_load((const void *)(last & -(uintptr_t)W));
        return rvp_srl(low, address * 8) | rvp_sll(high << 1, ~(address * 8));
    }
    if (how == ONE_REPEATED) {
        return (uint8_t)p[0] * v->mask;
    }
    if (how == FEW) {
        rvp_word few = (uint8_t)p[0];
        if (v->bytes > 1) {
            few |= (rvp_word)(uint8_t)p[1] << 8;
        }
        if (v->bytes > 2) {
            few |= (rvp_word)(uint8_t)p[2] << 16;
        }
        return few;
    }
    rvp_word x = 0;
    for (int i = 0; i < v->sources; i++) {
        x += (uint8_t)p[i] * rvp_load(v->masks + i * W);
    }
    return x;
}

/* Writes the first bytes of a register, but not all, by the binary digits of their number. */
RVP_INLINE void store_few(int8_t *p, rvp_word x, int bytes)
{
    if (RVP_LANES == 2 && (bytes & 4)) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            p[i] = (int8_t)(x >> (8 * i));
        }
        p += 4;
        x >>= W * 4;
    }
    if (bytes & 2) {
        p[0] = (int8_t)x;
        p[1] = (int8_t)(x >> 8);
        p += 2;
        x >>= 16;
    }
    if (bytes & 1) {
        p[0] = (int8_t)x;
    }
}

RVP_INLINE void store_pixel(int8_t *p, rvp_word x, const struct pixels *v, enum how how)
{
    if (how == WHOLE) {
        rvp_store(p, x);
    } else if (how == LANES) {
        rvp_store_lane(p + v->bytes - 4, rvp_packu(x, x));
        rvp_store_lane(p, x);
    } else if (how == FEW) {
        store_few(p, x, v->bytes);
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < W; i++) {
            p[i] = (int8_t)(x >> (8 * i));
        }
    }
}

/* Four neighbouring columns: the address of each, and the distance to its next pixel. For a column outside of the image the
 * distance is 0.
 */
struct columns {
    int8_t *at[4];
    int step[4];
};

RVP_INLINE struct columns columns_at(int8_t *row, int first, int count, int column_step, int step, int8_t *outside)
{
    struct columns c;
    for (int i = 0; i < 4; i++) {
        const int inside = first + i >= 0 && first + i < count;
        c.at[i] = inside ? row + (first + i) * column_step : outside;
        c.step[i] = inside ? step : 0;
    }
    return c;
}

/* `count` times four pixels, transposed, to four registers that are `apart` bytes from each other and `to_step` from the
 * next four; if `also` is not NULL to a second place as well. `flip` is xored into each byte.
 */
RVP_INLINE void bring_in(const struct columns *c, int count, int8_t *to, int to_step, int apart, int8_t *also,
                         rvp_word flip, const struct pixels *v, enum how how)
{
    const int8_t *p0 = c->at[0], *p1 = c->at[1], *p2 = c->at[2], *p3 = c->at[3];
    const int s0 = c->step[0], s1 = c->step[1], s2 = c->step[2], s3 = c->step[3];
    for (; count > 0; count--) {
        rvp_word a = load_pixel(p0, v, how), b = load_pixel(p1, v, how);
        rvp_word d = load_pixel(p2, v, how), e = load_pixel(p3, v, how);
        p0 += s0;
        p1 += s1;
        p2 += s2;
        p3 += s3;
        transpose(&a, &b, &d, &e);
        if (flip != 0) {
            a ^= flip;
            b ^= flip;
            d ^= flip;
            e ^= flip;
        }
        rvp_store(to, a);
        rvp_store(to + apart, b);
        rvp_store(to + 2 * apart, d);
        rvp_store(to + 3 * apart, e);
        to += to_step;
        if (also != NULL) {
            rvp_store(also, a);
            rvp_store(also + apart, b);
            rvp_store(also + 2 * apart, d);
            rvp_store(also + 3 * apart, e);
            also += to_step;
        }
    }
}

/* The bytes of a clip word. */
struct bounds {
    rvp_word lowest, highest, flip;
    int needed;
};

RVP_INLINE struct bounds bounds_of(int clip)
{
    return (struct bounds){rvp_splat8(clip >> 8), rvp_splat8(clip >> 16), rvp_splat8(clip >> 24),
                           ((uint32_t)clip >> 8) != 0x007f80};
}

RVP_INLINE rvp_word clamp(rvp_word x, const struct bounds *b)
{
    return rvp_smin8(rvp_smax8(x, b->lowest), b->highest) ^ b->flip;
}

/* `count` times four registers, transposed, to four pixels. */
RVP_INLINE void write_out(const struct columns *c, int count, const int8_t *from, const struct bounds *bounds,
                          const struct pixels *v, enum how how)
{
    int8_t *p0 = c->at[0], *p1 = c->at[1], *p2 = c->at[2], *p3 = c->at[3];
    const int s0 = c->step[0], s1 = c->step[1], s2 = c->step[2], s3 = c->step[3];
    for (; count > 0; count--) {
        rvp_word a = rvp_load(from), b = rvp_load(from + W), d = rvp_load(from + 2 * W), e = rvp_load(from + 3 * W);
        from += 4 * W;
        if (bounds->needed) {
            a = clamp(a, bounds);
            b = clamp(b, bounds);
            d = clamp(d, bounds);
            e = clamp(e, bounds);
        }
        transpose(&a, &b, &d, &e);
        store_pixel(p0, a, v, how);
        store_pixel(p1, b, v, how);
        store_pixel(p2, d, v, how);
        store_pixel(p3, e, v, how);
        p0 += s0;
        p1 += s1;
        p2 += s2;
        p3 += s3;
    }
}

static void write_whole(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                        const struct pixels *v)
{
    write_out(c, count, from, b, v, WHOLE);
}

static void write_lanes(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                        const struct pixels *v)
{
    write_out(c, count, from, b, v, LANES);
}

static void write_bytes(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                        const struct pixels *v)
{
    write_out(c, count, from, b, v, BYTES);
}

static void write_few(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                      const struct pixels *v)
{
    if (v->bytes == 3) {
        write_out(c, count, from, b, &(struct pixels){.bytes = 3}, FEW);
    } else {
        write_out(c, count, from, b, v, FEW);
    }
}

RVP_INLINE void write_pixels(const struct columns *c, int count, const int8_t *from, const struct bounds *b,
                             const struct pixels *v)
{
    if (v->how == WHOLE) {
        write_whole(c, count, from, b, v);
    } else if (RVP_LANES == 2 && v->how == LANES) {
        write_lanes(c, count, from, b, v);
    } else if (v->bytes < W) {
        write_few(c, count, from, b, v);
    } else {
        write_bytes(c, count, from, b, v);
    }
}

/* The channels of a group. The first pixel is at `image`; others are at multiples of `steps`. */
RVP_INLINE struct pixels pixels_of(const void *image, int steps, int bytes)
{
    const uintptr_t places = (uintptr_t)image | (uintptr_t)steps;
    struct pixels v = {.how = BYTES, .bytes = bytes};
    if (places % W == 0) {
        v.how = WHOLE;
    } else if (RVP_LANES == 2 && places % 4 == 0) {
        v.how = LANES;
    }
    return v;
}
