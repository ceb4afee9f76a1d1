/* SVDF: four features at a time, eight elements of their memories at a time. Four sums are requantized at a time. */
#include "svdf.h"

#include "four_rows.h"

#define SVDF_CHUNK 16
#define SVDF_ROW mve_row
#define SVDF_SUMS mve_four_rows
#define SVDF_NEWEST newest_of
#define SVDF_RESULTS results_of

MVE_INLINE int32_t svdf_remember(int16_t *state, const int16_t *time, int32_t memory, int32_t newest, int32_t sum)
{
    register int32_t total __asm__("r0") = sum; /* vmladava wants an even register */
    int16_t *const last = state + memory - 1, *from = state + 1;
    const int16_t *weights = time;
    int16x8_t moved, weight;
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                     "1: vldrh.u16 %q[moved], [%[from]], #16\n"
                     "vldrh.u16 %q[weight], [%[weights]], #16\n"
                     "vmladava.s16 %[total], %q[moved], %q[weight]\n"
                     "vstrh.16 %q[moved], [%[state]], #16\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [total] "+r"(total), [from] "+r"(from), [state] "+r"(state), [weights] "+r"(weights),
                       [moved] "=&w"(moved), [weight] "=&w"(weight)
                     : [count] "r"(memory - 1)
                     : "lr", "memory");
    *last = (int16_t)newest;
    return (int32_t)((uint32_t)total + (uint32_t)(newest * time[memory - 1]));
}

struct fl_svdf_image;
MVE_INLINE void results_of(int8_t *y, const int32_t *sums, const struct fl_svdf_image *p);

/* Up to three sums after `end` are requantized too. */
MVE_INLINE void newest_of(int32_t *sums, const int32_t *end, int32_t multiplier, int32_t shift)
{
    for (; sums < end; sums += 4) {
        vst1q_s32(sums, mve_to_int16(mve_scaled(vld1q_s32(sums), vdupq_n_s32(multiplier), vdupq_n_s32(shift))));
    }
}

#include "svdf_image.h"

MVE_INLINE void results_of(int8_t *y, const int32_t *sums, const struct fl_svdf_image *p)
{
    const int32x4_t multiplier = vdupq_n_s32(p->multiplier), shift = vdupq_n_s32(p->shift);
    const int32x4_t low = vdupq_n_s32(p->low), high = vdupq_n_s32(p->high);
    const int32_t zero_point = p->zero_point;
    for (int32_t left = p->units; left > 0; left -= 4) {
        const int32x4_t sum = vaddq_n_s32(mve_scaled(vld1q_s32(sums), multiplier, shift), zero_point);
        vstrbq_p_s32(y, vminq_s32(vmaxq_s32(sum, low), high), vctp32q((uint32_t)left));
        sums += 4;
        y += 4;
    }
}

void mve_svdf_s8(const int8_t *x, const int8_t *feature, const int32_t *feature_bias, const int16_t *time, const int32_t *bias,
                int16_t *state, int8_t *y, int32_t *scratch, const void *parameters)
{
    svdf_step(x, feature, feature_bias, time, bias, state, y, scratch, parameters);
}
