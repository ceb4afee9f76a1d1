/* Shared by all families: SVDF on int8 for one row.
 *
 * The including file defines
 *
 *   SVDF_CHUNK     elements of a row that are multiplied at a time
 *   SVDF_ROW       (to, from, count): copies a row and pads it with zeros to a multiple of SVDF_CHUNK
 *   SVDF_SUMS      (row, weights, chunks, bias, sums): sums[k] = bias[k] + row . weights of feature k, k below 4
 *   svdf_remember  (state, time, memory, newest, sum): shifts the memory of a feature by one element to the left and appends `newest`.
 *                  Returns sum plus the products of the memory and `time`
 *
 * and may define SVDF_NEWEST instead of svdf_newest, and SVDF_RESULTS instead of svdf_results.
 *
 * feature       [features / 4, rounded up][chunks][4][SVDF_CHUNK], padded with zeros
 * feature_bias  the term of the input's zero point for each feature
 * state         [units * rank][memory], the oldest element first
 * scratch       one sum per feature, rounded up to a multiple of four, and the row, aligned to 16 bytes
 */
#pragma once

#include <stdint.h>

#include "requantize.h"

struct fl_svdf_image {
    int32_t units, rank, depth, memory;
    int32_t feature_multiplier, feature_shift, multiplier, shift, zero_point, low, high;
};

#define SVDF_APART static __attribute__((noinline)) /* not inlined: uses all registers */

SVDF_APART void svdf_features(const int8_t *row, const int8_t *feature, const int32_t *bias, int32_t chunks, int32_t *sums,
                              const int32_t *end)
{
    for (; sums < end; sums += 4) {
        SVDF_SUMS(row, feature, chunks, bias, sums);
        feature += 4 * SVDF_CHUNK * chunks;
        bias += 4;
    }
}

#ifndef SVDF_NEWEST
#define SVDF_NEWEST svdf_newest
SVDF_APART void svdf_newest(int32_t *sums, const int32_t *end, int32_t multiplier, int32_t shift)
{
    for (; sums != end; sums++) {
        *sums = fl_clamp(fl_requantize_double(*sums, multiplier, shift), INT16_MIN, INT16_MAX);
    }
}
#endif

/* The sums of units overwrite sums of features that are no longer needed. */
SVDF_APART void svdf_units(int32_t *sums, const int16_t *time, const int32_t *bias, int16_t *state, int32_t units, int32_t rank,
                           int32_t memory)
{
    const int32_t *newest = sums;
    for (const int32_t *const end = bias + units; bias != end; bias++) {
        int32_t total = *bias;
        for (const int32_t *const last = newest + rank; newest != last; newest++) {
            total = svdf_remember(state, time, memory, *newest, total);
            state += memory;
            time += memory;
        }
        *sums++ = total;
    }
}

#ifndef SVDF_RESULTS
#define SVDF_RESULTS svdf_results
SVDF_APART void svdf_results(int8_t *y, const int32_t *sums, const struct fl_svdf_image *given)
{
    const struct fl_svdf_image p = *given; /* local copy: y may alias it */
    for (const int32_t *const end = sums + p.units; sums != end; sums++) {
        const int32_t scaled = fl_requantize_double(*sums, p.multiplier, p.shift);
        *y++ = (int8_t)fl_clamp(fl_add_wrapping(scaled, p.zero_point), p.low, p.high);
    }
}
#endif

static inline __attribute__((always_inline)) void svdf_step(const int8_t *x, const int8_t *feature, const int32_t *feature_bias,
                                                            const int16_t *time, const int32_t *bias, int16_t *state, int8_t *y,
                                                            int32_t *scratch, const void *parameters)
{
    const struct fl_svdf_image *const p = parameters;
    const int32_t features = p->units * p->rank;
    int8_t *const row = (int8_t *)(scratch + ((features + 3) & ~3));
    SVDF_ROW(row, x, p->depth);
    svdf_features(row, feature, feature_bias, (p->depth + SVDF_CHUNK - 1) / SVDF_CHUNK, scratch, scratch + features);
    SVDF_NEWEST(scratch, scratch + features, p->feature_multiplier, p->feature_shift);
    svdf_units(scratch, time, bias, state, p->units, p->rank, p->memory);
    SVDF_RESULTS(y, scratch, p);
}
