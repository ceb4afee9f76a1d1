/* Sums, or maxima, of 16 channels at a time over all pixels of a band; of four at the end. */
#include "mve_row_sums.h"

#include "bytes.h"

/* Ten instructions per pixel; GCC takes 13. */
#define PIXELS(load, join)                                                                                             \
    __asm__ volatile("dls lr, %[pixels]\n"                                                                             \
                     "1: " load " %q[z], [%[x]]\n" join " %q[a], %q[a], %q[z]\n"                                       \
                     load " %q[w], [%[x], #4]\n" join " %q[b], %q[b], %q[w]\n"                                         \
                     load " %q[z], [%[x], #8]\n" join " %q[c], %q[c], %q[z]\n"                                         \
                     load " %q[w], [%[x], #12]\n" join " %q[d], %q[d], %q[w]\n"                                        \
                     "add %[x], %[x], %[channels]\n"                                                                   \
                     "le lr, 1b\n"                                                                                     \
                     : [a] "+w"(a), [b] "+w"(b), [c] "+w"(c), [d] "+w"(d), [z] "=&w"(z), [w] "=&w"(w), [x] "+l"(x)     \
                     : [pixels] "r"(pixels), [channels] "r"(channels)                                                  \
                     : "lr", "memory")

/* 16 channels of all pixels. */
MVE_INLINE void sixteen(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    int32x4_t a = vldrwq_s32(sums), b = vldrwq_s32(sums + 4), c = vldrwq_s32(sums + 8), d = vldrwq_s32(sums + 12), z, w;
    if (is_max && is_unsigned) {
        PIXELS("vldrb.u32", "vmax.s32");
    } else if (is_max) {
        PIXELS("vldrb.s32", "vmax.s32");
    } else if (is_unsigned) {
        PIXELS("vldrb.u32", "vadd.i32");
    } else {
        PIXELS("vldrb.s32", "vadd.i32");
    }
    vstrwq_s32(sums, a);
    vstrwq_s32(sums + 4, b);
    vstrwq_s32(sums + 8, c);
    vstrwq_s32(sums + 12, d);
}

/* Up to four channels of all pixels. */
MVE_INLINE void four(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, mve_pred16_t some, int is_unsigned, int is_max)
{
    int32x4_t a = vldrwq_z_s32(sums, some);
    for (; pixels > 0; pixels--) {
        const int32x4_t value = is_unsigned ? (int32x4_t)vldrbq_z_u32(x, some) : vldrbq_z_s32((const int8_t *)x, some);
        a = is_max ? vmaxq_s32(a, value) : vaddq_s32(a, value);
        x += channels;
    }
    vstrwq_p_s32(sums, a, some);
}

MVE_INLINE void band(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels, int is_unsigned, int is_max)
{
    int32_t c = 0;
    for (; c + 16 <= channels; c += 16) {
        sixteen(x + c, sums + c, pixels, channels, is_unsigned, is_max);
    }
    for (; c < channels; c += 4) {
        four(x + c, sums + c, pixels, channels, vctp32q((uint32_t)(channels - c)), is_unsigned, is_max);
    }
}

void mve_row_sums_s8(const int8_t *x, int32_t *sums, int32_t pixels, int32_t channels)
{
    band((const uint8_t *)x, sums, pixels, channels, 0, 0);
}

void mve_row_sums_u8(const uint8_t *x, int32_t *sums, int32_t pixels, int32_t channels)
{
    band(x, sums, pixels, channels, 1, 0);
}

void mve_row_maxima_s8(const int8_t *x, int32_t *maxima, int32_t pixels, int32_t channels)
{
    band((const uint8_t *)x, maxima, pixels, channels, 0, 1);
}

void mve_row_maxima_u8(const uint8_t *x, int32_t *maxima, int32_t pixels, int32_t channels)
{
    band(x, maxima, pixels, channels, 1, 1);
}
