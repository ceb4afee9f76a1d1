/* Shared by all families: RESIZE_BILINEAR of int8 by halving sums, for weights that are multiples of 1/8.
 *
 * The including file defines
 *
 *   RH_GROUP    channels of a group; their bytes are one word
 *   RH_APART    whether images of whole groups have a separate function, which takes fewer registers
 *   rh_word     a word with the bytes of a group, or with half of a group in 16-bit lanes
 *   rh_halved   (a, b): half of the sum in each 16-bit lane
 *   rh_spread   (bytes): a group as two words of x * 256 + 128, in any order
 *   rh_joined   (lanes): the bytes of two words of y * 256 + 128 with y rounded, halves away from zero
 *   rh_load     (from), rh_store(to, bytes): a group of an image of whole groups
 *   RH_FOURS    whether images of whole four-byte units have a separate function too, with rh_gather_fours and rh_scatter_fours
 *   rh_gather   (from, count), rh_scatter(to, bytes, count): 0 < count <= RH_GROUP bytes at any address
 *
 * A lane has a value times 256, plus the half for rounding. An interpolation with weights 1 - n/8 and n/8, n up to 4, is one to
 * three halved sums. Up to six halvings in sequence are exact, because the first values are multiples of 128.
 *
 * scratch  [width][channels / RH_GROUP, rounded up] groups of two words: a row interpolated between two rows of the image
 */
#pragma once

#include <stdint.h>

#include "resize_image.h"

#define RH_INLINE static inline __attribute__((always_inline))

struct rh_lanes {
    rh_word first, second;
};

RH_INLINE struct rh_lanes rh_halved_both(struct rh_lanes a, struct rh_lanes b)
{
    return (struct rh_lanes){rh_halved(a.first, b.first), rh_halved(a.second, b.second)};
}

/* `half` is half of the sum of both. */
RH_INLINE struct rh_lanes rh_nearer(struct rh_lanes half, struct rh_lanes near, struct rh_lanes far, int eighths)
{
    if (eighths == 4) {
        return half;
    }
    if (eighths == 2) {
        return rh_halved_both(half, near);
    }
    return rh_halved_both(rh_halved_both(half, eighths == 1 ? near : far), near);
}

RH_INLINE struct rh_lanes rh_between(struct rh_lanes near, struct rh_lanes far, int eighths)
{
    return rh_nearer(rh_halved_both(near, far), near, far, eighths);
}

/* A run of groups side by side. */
RH_INLINE void rh_row(struct rh_lanes *to, const int8_t *near, const int8_t *far, int eighths, int32_t groups)
{
    for (struct rh_lanes *const end = to + groups; to != end; to++) {
        struct rh_lanes found = rh_spread(rh_load(near));
        if (eighths != 0) {
            found = rh_between(found, rh_spread(rh_load(far)), eighths);
            far += RH_GROUP;
        }
        *to = found;
        near += RH_GROUP;
    }
}

/* What the compiler knows of a pixel's size: any bytes, units of four, or groups. */
enum { RH_BYTES, RH_UNITS, RH_WHOLE };

RH_INLINE rh_word rh_part(const int8_t *from, int32_t count, int unit)
{
#if RH_FOURS
    if (unit == RH_UNITS) {
        return rh_gather_fours(from, count);
    }
#endif
    (void)unit;
    return rh_gather(from, count);
}

RH_INLINE void rh_store_part(int8_t *to, rh_word bytes, int32_t count, int unit)
{
#if RH_FOURS
    if (unit == RH_UNITS) {
        rh_scatter_fours(to, bytes, count);
        return;
    }
#endif
    (void)unit;
    rh_scatter(to, bytes, count);
}

/* Pixels that are not a multiple of groups. */
RH_INLINE void rh_parts(struct rh_lanes *to, const int8_t *near, const int8_t *far, int eighths, int32_t pixels, int32_t channels,
                        int unit)
{
    for (; pixels > 0; pixels--) {
        for (int32_t left = channels; left > 0; left -= RH_GROUP) {
            const int32_t count = left < RH_GROUP ? left : RH_GROUP;
            struct rh_lanes found = rh_spread(rh_part(near, count, unit));
            if (eighths != 0) {
                found = rh_between(found, rh_spread(rh_part(far, count, unit)), eighths);
                far += count;
            }
            *to++ = found;
            near += count;
        }
    }
}

RH_INLINE void rh_pixel(int8_t *y, const struct rh_lanes *near, const struct rh_lanes *far, int eighths, int32_t channels, int unit)
{
    for (; channels > 0; channels -= RH_GROUP) {
        const struct rh_lanes found = eighths == 0 ? *near : rh_between(*near, *far++, eighths);
        near++;
        if (unit == RH_WHOLE) {
            rh_store(y, rh_joined(found));
        } else {
            rh_store_part(y, rh_joined(found), channels < RH_GROUP ? channels : RH_GROUP, unit);
        }
        y += RH_GROUP;
    }
}

/* Two pixels side by side between the same two pixels of x, each nearer to another of them. Pixels are groups. */
RH_INLINE void rh_two_pixels(int8_t *y, const struct rh_lanes *left, const struct rh_lanes *right, int eighths, int32_t channels)
{
    int8_t *second = y + channels;
    for (const int8_t *const end = second; y != end; y += RH_GROUP) {
        const struct rh_lanes a = *left++, b = *right++, half = rh_halved_both(a, b);
        rh_store(y, rh_joined(rh_nearer(half, a, b, eighths)));
        rh_store(second, rh_joined(rh_nearer(half, b, a, eighths)));
        second += RH_GROUP;
    }
}

/* Whether the pixel at `at` and the next pixel are between the same two pixels of x. */
RH_INLINE int rh_is_two(const int32_t *at)
{
    return at[2] != 0 && at[0] == at[4] && at[1] == at[3] && at[2] == at[5];
}

/* Calls `function` with a constant share, for each possible share. */
#define RH_FOR_EACH_SHARE(eighths, call) \
    switch (eighths) {                   \
    case 0: call(0); break;              \
    case 1: call(1); break;              \
    case 2: call(2); break;              \
    case 3: call(3); break;              \
    default: call(4); break;             \
    }

/* Pixels are multiples of `unit` and begin at multiples of it. With RH_APART it is a literal. */
RH_INLINE void rh_rows(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch, const void *parameters,
                       int unit)
{
    const struct fl_resize p = *(const struct fl_resize *)parameters; /* local copy: y may alias it */
    const int32_t line = p.width * p.channels, groups = (p.channels + RH_GROUP - 1) / RH_GROUP;
    struct rh_lanes *const between = (struct rh_lanes *)scratch;
    for (const int32_t *const end = rows + 3 * p.out_height; rows != end; rows += 3) {
        const int8_t *const near = x + rows[0] * line, *const far = x + rows[1] * line;
#define RH_ROW(share)                                                   \
    if (unit == RH_WHOLE) {                                             \
        rh_row(between, near, far, share, p.width * groups);            \
    } else {                                                            \
        rh_parts(between, near, far, share, p.width, p.channels, unit); \
    }
        RH_FOR_EACH_SHARE(rows[2], RH_ROW)
        const int32_t *const last = columns + 3 * (p.out_width - 1);
        for (const int32_t *at = columns; at <= last; at += 3) {
            const struct rh_lanes *const here = between + at[0] * groups, *const there = between + at[1] * groups;
#define RH_TWO(share) rh_two_pixels(y, here, there, share, p.channels);
            if (unit == RH_WHOLE && at != last && rh_is_two(at)) {
                RH_FOR_EACH_SHARE(at[2], RH_TWO)
                y += 2 * p.channels;
                at += 3;
                continue;
            }
#define RH_PIXEL(share)                                                                       \
    if (unit == RH_WHOLE) {                                                                   \
        rh_pixel(y, here, there, share, p.channels, RH_WHOLE);                                \
    } else {                                                                                  \
        rh_pixel(y, here, there, share, p.channels, unit == RH_UNITS ? RH_UNITS : RH_BYTES);  \
    }
            RH_FOR_EACH_SHARE(at[2], RH_PIXEL)
            y += p.channels;
        }
    }
}

#if RH_APART
/* Separate functions, so that each keeps its values in registers. */
static __attribute__((noinline)) void rh_whole_rows(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y,
                                                    int32_t *scratch, const void *parameters)
{
    rh_rows(x, rows, columns, y, scratch, parameters, RH_WHOLE);
}

static __attribute__((noinline)) void rh_any_rows(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y,
                                                  int32_t *scratch, const void *parameters)
{
    rh_rows(x, rows, columns, y, scratch, parameters, RH_BYTES);
}

#if RH_FOURS
static __attribute__((noinline)) void rh_unit_rows(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y,
                                                   int32_t *scratch, const void *parameters)
{
    rh_rows(x, rows, columns, y, scratch, parameters, RH_UNITS);
}
#endif
#endif

RH_INLINE void rh_image(const int8_t *x, const int32_t *rows, const int32_t *columns, int8_t *y, int32_t *scratch, const void *parameters)
{
    const uintptr_t channels = (uintptr_t)((const struct fl_resize *)parameters)->channels;
    const uintptr_t places = (uintptr_t)x | (uintptr_t)y | channels;
    const int whole = (places & (RH_GROUP - 1)) == 0;
#if RH_APART
#if RH_FOURS
    if (!whole && (places & 3) == 0) {
        rh_unit_rows(x, rows, columns, y, scratch, parameters);
        return;
    }
#endif
    (whole ? rh_whole_rows : rh_any_rows)(x, rows, columns, y, scratch, parameters);
#else
    rh_rows(x, rows, columns, y, scratch, parameters, whole ? RH_WHOLE : RH_BYTES);
#endif
}
