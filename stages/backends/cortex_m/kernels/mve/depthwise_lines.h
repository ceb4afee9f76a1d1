/* Lines of 16 channels in scratch, from which a depthwise convolution reads its windows. A line is a row of the padded image:
 * int8 [columns][16], including the padding.
 */
#pragma once

#include "bytes.h"
#include "depthwise_image.h"

enum { GROUP = 16 };

/* `count` pixels of 16 channels. */
MVE_INLINE void load_whole_pixels(int8_t *line, const uint8_t *from, int32_t count, int32_t pixel)
{
    int8x16_t bytes;
    __asm__ volatile("wls lr, %[count], 2f\n"
                     "1: vldrb.8 %q[bytes], [%[from]]\n"
                     "add %[from], %[from], %[pixel]\n"
                     "vstrb.8 %q[bytes], [%[line]], #16\n"
                     "le lr, 1b\n"
                     "2:"
                     : [line] "+r"(line), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count), [pixel] "r"(pixel)
                     : "lr", "memory");
}

/* `count` pixels of `channels` channels, each xored with flip. */
MVE_INLINE void load_pixels(int8_t *line, const uint8_t *from, int32_t count, int32_t pixel, int32_t channels, uint8x16_t flip)
{
    uint8x16_t bytes;
    __asm__ volatile("vctp.8 %[channels]\n"
                     "wls lr, %[count], 2f\n"
                     "1: vpst\n"
                     "vldrbt.8 %q[bytes], [%[from]]\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "vstrb.8 %q[bytes], [%[line]], #16\n"
                     "add %[from], %[from], %[pixel]\n"
                     "le lr, 1b\n"
                     "2:"
                     : [line] "+r"(line), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count), [pixel] "r"(pixel), [channels] "r"(channels), [flip] "w"(flip)
                     : "lr", "p0", "memory");
}

/* Row `row` of the image, which may lie outside of it. */
MVE_INLINE void load_line(int8_t *line, const uint8_t *image, int32_t row, const struct mve_image *d, int32_t channels)
{
    const uint8x16_t fill = vdupq_n_u8((uint8_t)d->fill);
    if ((uint32_t)row >= (uint32_t)d->height) {
        (void)mve_set((uint8_t *)line, d->pitch, fill);
        return;
    }
    const int32_t left = d->left * GROUP, room = d->pitch - left;
    const int32_t bytes = d->width * GROUP < room ? d->width * GROUP : room;
    const uint8_t *const from = image + row * d->width * d->pixel;
    line = (int8_t *)mve_set((uint8_t *)line, left, fill);
    if (channels == GROUP && d->flip == 0) {
        load_whole_pixels(line, from, (int32_t)((uint32_t)bytes / GROUP), d->pixel);
    } else {
        load_pixels(line, from, (int32_t)((uint32_t)bytes / GROUP), d->pixel, channels, vdupq_n_u8((uint8_t)d->flip));
    }
    (void)mve_set((uint8_t *)line + bytes, room - bytes, fill);
}
