/* Products of 16-bit activations: three pixels times four channels at a time. */
#include "products16.h"

#include "bytes.h"

#define P16_ROWS 3
#define P16_CHANNELS 4
#define P16_PAIR 1
#define P16_PAIRED 0
#define P16_WRITE_SHORT write_short
typedef int32_t p16_sum;

MVE_INLINE void p16_copy(int16_t *to, int32_t apart, const int16_t *from, int32_t count)
{
    (void)apart; /* elements are neighbours */
    mve_copy((uint8_t *)to, (const uint8_t *)from, 2 * count);
}

/* products16_tile.S */
void mve_products16_r3(const int16_t *x, const int8_t *w, int32_t depth, int32_t blocks, int32_t *sums);
void mve_products16_r1(const int16_t *x, const int8_t *w, int32_t depth, int32_t blocks, int32_t *sums);

MVE_INLINE void p16_products(int32_t rows, const int16_t *panel, int32_t pitch, const int8_t *w, int32_t depth, int32_t count,
                             int32_t *sums)
{
    (void)pitch; /* the depth */
    if (rows == 1) {
        mve_products16_r1(panel, w, depth, count >> 3, sums);
    } else {
        mve_products16_r3(panel, w, depth, count >> 3, sums);
    }
}

/* Results of up to four channels: lanes are channels. */
MVE_INLINE void write_short(int16_t *y, const int32_t *sums, const void *channels, int32_t rows, int32_t count, int32_t step,
                            int32_t low, int32_t high)
{
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint32x4_t records = vshlq_n_u32(lanes, 4), columns = vmulq_n_u32(lanes, 4 * (uint32_t)rows);
    const int32x4_t bias = vldrwq_gather_offset_s32((const int32_t *)channels, records);
    const int32x4_t scale = vldrwq_gather_offset_s32((const int32_t *)channels + 2, records);
    const mve_pred16_t there = vctp32q((uint32_t)count);
#pragma GCC unroll 3
    for (int32_t r = 0; r < rows; r++) {
        const int32x4_t t = vaddq_s32(vldrwq_gather_offset_s32(sums + r, columns), bias);
        const int32x4_t scaled = vrmulhq_s32(t, scale);
        const int32x4_t clamped = vminq_s32(vmaxq_s32(scaled, vdupq_n_s32(low)), vdupq_n_s32(high));
        vstrhq_p_s32(y + r * step, clamped, there);
    }
}

#include "products16_image.h"

void mve_products16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int32_t *scratch, const void *parameters)
{
    p16_image(x, w, channels, y, scratch, parameters);
}
