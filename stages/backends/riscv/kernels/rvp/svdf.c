/* SVDF: four features at a time, two elements of their memories at a time. */
#include "svdf.h"

#include "four_rows.h"

#define SVDF_CHUNK RVP_WORD_BYTES
#define SVDF_ROW rvp_row
#define SVDF_SUMS rvp_four_rows

/* Weights of time are above -2^15, so that no two products saturate. */
RVP_INLINE int32_t svdf_remember(int16_t *state, const int16_t *time, int32_t memory, int32_t newest, int32_t sum)
{
    uint32_t total = (uint32_t)sum;
    int16_t *const last = state + memory - 1;
    if ((memory & 1) == 0 && (((uintptr_t)state | (uintptr_t)time) & 3) == 0) {
        rvp_word old = rvp_load_lane(state);
#pragma GCC unroll 2
        for (; state + 1 != last; state += 2, time += 2) {
            const rvp_word next = rvp_load_lane(state + 2), moved = rvp_pkbt16(next, old);
            rvp_store_lane(state, moved);
            total += (uint32_t)rvp_kmda(moved, rvp_load_lane(time));
            old = next;
        }
        const rvp_word moved = rvp_pkbt16((rvp_word)newest, old);
        rvp_store_lane(state, moved);
        return (int32_t)(total + (uint32_t)rvp_kmda(moved, rvp_load_lane(time)));
    }
    for (; state != last; state++, time++) {
        *state = state[1];
        total += (uint32_t)(*state * *time);
    }
    *last = (int16_t)newest;
    return (int32_t)(total + (uint32_t)(newest * *time));
}

#include "svdf_image.h"

void rvp_svdf_s8(const int8_t *x, const int8_t *feature, const int32_t *feature_bias, const int16_t *time, const int32_t *bias,
                int16_t *state, int8_t *y, int32_t *scratch, const void *parameters)
{
    svdf_step(x, feature, feature_bias, time, bias, state, y, scratch, parameters);
}
