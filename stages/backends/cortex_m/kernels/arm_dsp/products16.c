/* Four pixels times two channels. A panel has words with two elements of the depth, one word per pixel. */
#include "products16.h"

#include "dsp.h"

typedef int32_t p16_sum;
#define P16_ROWS 4
#define P16_CHANNELS 2
#define P16_PAIR 2
#define P16_PAIRED 1
#define P16_ALL_SHORT all_short
/* Functions of products16_tile.S. The last one returns nothing and skips a single last channel. */
void arm_dsp_products16_r4(const int16_t *panel, const int8_t *w, int32_t steps, int32_t *sums);
void arm_dsp_products16_r1(const int16_t *panel, const int8_t *w, int32_t steps, int32_t *sums);
void arm_dsp_products16_short(const int16_t *panel, const int8_t *w, const void *channels, int16_t *y, const void *parameters);

DSP_INLINE void p16_copy(int16_t *to, int32_t apart, const int16_t *from, int32_t count)
{
    for (; count >= 16; count -= 16) {
#pragma GCC unroll 8
        for (int32_t k = 0; k < 8; k++) {
            dsp_store(to + k * apart, dsp_load(from + 2 * k));
        }
        to += 8 * apart;
        from += 16;
    }
    for (; count >= 2; count -= 2) {
        dsp_store(to, dsp_load(from));
        to += apart;
        from += 2;
    }
    if (count > 0) {
        to[0] = from[0];
        to[1] = 0;
    }
}

DSP_INLINE void p16_products(int32_t rows, const int16_t *panel, int32_t pitch, const int8_t *w, int32_t depth, int32_t count,
                             int32_t *sums)
{
    (void)pitch;
    (void)depth; /* the block has only one pair of channels */
    if (rows > 1) {
        arm_dsp_products16_r4(panel, w, count >> 1, sums);
    } else {
        arm_dsp_products16_r1(panel, w, count >> 1, sums);
    }
}

/* All pairs of channels. */
DSP_INLINE int32_t all_short(const int16_t *panel, const int8_t *w, const void *channels, int16_t *y, int32_t out_channels,
                             const void *parameters)
{
    if (out_channels > 1) {
        arm_dsp_products16_short(panel, w, channels, y, parameters);
    }
    return out_channels & ~1;
}

#include "products16_image.h"

void arm_dsp_products16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int32_t *scratch,
                        const void *parameters)
{
    p16_image(x, w, channels, y, scratch, parameters);
}
