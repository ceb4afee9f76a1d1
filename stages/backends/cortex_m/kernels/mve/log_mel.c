/* Log-mel spectrum of frames, four complex numbers in two vectors. */
#include "log_mel.h"

#include "bytes.h"
#include "log_mel_types.h"

typedef int32x4_t lm_word;
typedef uint32x4_t lm_index;
#define LM_LANES 4
#define lm_load vldrwq_s32
#define lm_store vstrwq_s32
#define lm_add vaddq_s32
#define lm_sub vsubq_s32
#define lm_high vmulhq_s32
#define lm_shift2(a) vshrq_n_s32(a, 2)
#define lm_shift1(a) vshrq_n_s32(a, 1)
#define lm_places vldrhq_u32
#define lm_put(to, places, value) vstrwq_scatter_shifted_offset_s32(to, places, value)

/* Indices 0, 1, 8, 9. */
MVE_INLINE uint32x4_t two_groups(void)
{
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    return vaddq_u32(lanes, vmulq_n_u32(vshrq_n_u32(lanes, 1), 6));
}
#define lm_load_two(from) vldrwq_gather_shifted_offset_s32(from, two_groups())
#define lm_store_two(to, value) vstrwq_scatter_shifted_offset_s32(to, two_groups(), value)

/* Samples after the frame are not read; they are 0. */
MVE_INLINE int32x4_t samples(const struct frame *f, int32_t i, int emphasized, int inside)
{
    const uint32x4_t even = vidupq_n_u32(0, 2);
    const int32_t count = f->size - i > 0 ? (f->size - i + 1) / 2 : 0;
    const mve_pred16_t is_inside = inside ? 0xffff : vctp32q((uint32_t)count);
    const int16_t *x = f->x + i;
#define SAMPLES(x) (inside ? vldrhq_gather_shifted_offset_s32(x, even) : vldrhq_gather_shifted_offset_z_s32(x, even, is_inside))
    if (!emphasized)
        return vshlq_r_s32(SAMPLES(x), 15 + f->shift);
    const int32x4_t before = vmulq_n_s32(SAMPLES(x), f->pre_emphasis);
    return vshlq_r_s32(vsubq_s32(vshlq_n_s32(SAMPLES(x + 1), 15), before), f->shift);
}

MVE_INLINE void lm_pairs(const struct frame *f, int32_t i, const int32_t *window, int32x4_t *re, int32x4_t *im,
                         int emphasized, int inside)
{
    *re = vmulhq_s32(samples(f, 2 * i, emphasized, inside), vldrwq_s32(window));
    *im = vmulhq_s32(samples(f, 2 * i + 1, emphasized, inside), vldrwq_s32(window + 4));
}

MVE_INLINE int32_t headroom_plain(const struct frame *f)
{
    int16x8_t most = vdupq_n_s16(0), least = most;
    const int16_t *x = f->x;
    for (int32_t i = f->size; i > 0; i -= 8, x += 8) {
        const int16x8_t eight = vldrhq_z_s16(x, vctp16q((uint32_t)i));
        most = vmaxq_s16(most, eight);
        least = vminq_s16(least, eight);
    }
    const int32_t used = vmaxvq_s16(vminvq_s16(0, least) ^ -1, most);
    return fl_leading_zeros((uint32_t)used << 15 | 32767) - 1;
}

MVE_INLINE int32_t headroom_emphasized(const struct frame *f)
{
    uint32x4_t used = vdupq_n_u32(32767);
    const int16_t *x = f->x;
    for (int32_t i = f->size; i > 0; i -= 4, x += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)i);
        const int32x4_t before = vmulq_n_s32(vldrhq_z_s32(x, inside), f->pre_emphasis);
        const int32x4_t y = vsubq_s32(vshlq_n_s32(vldrhq_z_s32(x + 1, inside), 15), before);
        used = vorrq_u32(used, (uint32x4_t)veorq_s32(y, vshrq_n_s32(y, 31)));
    }
    const uint32_t all = vgetq_lane_u32(used, 0) | vgetq_lane_u32(used, 1) | vgetq_lane_u32(used, 2) | vgetq_lane_u32(used, 3);
    return fl_leading_zeros(all) - 1;
}

#include "log_mel_lanes.h"

MVE_INLINE struct log_mel_complex log_mel_bin(const struct log_mel_spectrum *z, int32_t k)
{
    return (struct log_mel_complex){z->re[k], z->im[k]};
}

MVE_INLINE struct log_mel_side log_mel_energies(const struct log_mel_spectrum *z, int32_t first, int32_t end, const int32_t *ramps)
{
    int64_t total = 0, rising = 0;
    const int32_t *re = z->re + first, *im = z->im + first, *ramp = ramps + first;
    for (int32_t count = end - first; count > 0; count -= 4, re += 4, im += 4, ramp += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)count);
        const int32x4_t a = vldrwq_z_s32(re, inside), b = vldrwq_z_s32(im, inside), w = vldrwq_z_s32(ramp, inside);
        total = vmlaldavaq_s32(total, a, a);
        rising = vmlaldavaq_s32(rising, a, vmulhq_s32(a, w));
        total = vmlaldavaq_s32(total, b, b);
        rising = vmlaldavaq_s32(rising, b, vmulhq_s32(b, w));
    }
    return (struct log_mel_side){total, rising * 2};
}

#include "log_mel_image.h"

/* Bins k = 1 to points / 2 and points - k, four at a time. Bin points / 2 is both: its first value counts, and is stored last. */
LOG_MEL_APART void real_spectrum(const struct log_mel_spectrum *z, const int32_t *factors, int32_t points)
{
    int32_t *const all_re = z->re, *const all_im = z->im, *re = all_re + 1, *im = all_im + 1;
    const uint32x4_t backwards = vdwdupq_n_u32(3, 4, 1);
    for (int32_t k = points - 4; k >= points / 2; k -= 4, re += 4, im += 4, factors += 8) {
        int32_t *const upper_re = all_re + k, *const upper_im = all_im + k;
        const int32x4_t a = vldrwq_s32(re), c = vldrwq_gather_shifted_offset_s32(upper_re, backwards);
        const int32x4_t b = vldrwq_s32(im), d = vldrwq_gather_shifted_offset_s32(upper_im, backwards);
        const int32x4_t cosine = vldrwq_s32(factors), sine = vldrwq_s32(factors + 4);
        const int32x4_t odd_re = vaddq_s32(b, d), odd_im = vsubq_s32(c, a);
        const int32x4_t even_re = vshrq_n_s32(vaddq_s32(a, c), 2), even_im = vshrq_n_s32(vsubq_s32(b, d), 2);
        const int32x4_t turn_re = vaddq_s32(vmulhq_s32(odd_re, cosine), vmulhq_s32(odd_im, sine));
        const int32x4_t turn_im = vsubq_s32(vmulhq_s32(odd_im, cosine), vmulhq_s32(odd_re, sine));
        vstrwq_scatter_shifted_offset_s32(upper_re, backwards, vsubq_s32(even_re, turn_re));
        vstrwq_scatter_shifted_offset_s32(upper_im, backwards, vsubq_s32(even_im, turn_im));
        vstrwq_s32(re, vaddq_s32(even_re, turn_re));
        vstrwq_s32(im, vaddq_s32(even_im, turn_im));
    }
}

#define SPECTRUM(kind)                                                                                                          \
    LOG_MEL_APART int32_t spectrum_##kind(const struct log_mel_spectrum *z, const int16_t *x, const int32_t *window,            \
                                          const uint16_t *places, const int32_t *factors, const struct fl_log_mel *p)           \
    {                                                                                                                           \
        struct frame f = {x, window, p->frame, p->pre_emphasis, 0};                                                                     \
        const int32_t points = p->fft_length / 2;                                                                               \
        f.shift = headroom_##kind(&f);                                                                                          \
        const int32_t size = first_stage_##kind(z, &f, places, points);                                                 \
        real_spectrum(z, later_stages(z, factors, points, size), points);                                                       \
        return f.shift;                                                                                                         \
    }

SPECTRUM(plain)
SPECTRUM(emphasized)

MVE_INLINE struct log_mel_spectrum log_mel_spectrum_in(void *bins, int32_t points)
{
    return (struct log_mel_spectrum){bins, (int32_t *)bins + points};
}

LOG_MEL_FUNCTIONS(mve)
