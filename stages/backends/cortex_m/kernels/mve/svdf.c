/* SVDF: four features at a time, eight elements of their memories at a time. */
#include "svdf.h"

#include "four_rows.h"

#define SVDF_CHUNK 16
#define SVDF_ROW mve_row
#define SVDF_SUMS mve_four_rows

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

#include "svdf_image.h"

void mve_svdf_s8(const int8_t *x, const int8_t *feature, const int32_t *feature_bias, const int16_t *time, const int32_t *bias,
                int16_t *state, int8_t *y, int32_t *scratch, const void *parameters)
{
    svdf_step(x, feature, feature_bias, time, bias, state, y, scratch, parameters);
}
