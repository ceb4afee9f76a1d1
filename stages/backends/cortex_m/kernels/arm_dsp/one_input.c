#include "one_input.h"

#include "dsp.h"

DSP_INLINE const uint8_t *row_of(const uint8_t *x, const uint8_t *table, int32_t words)
{
    return table + 4 * words * *x;
}

/* Whole words are copied; the next pixels overwrite the bytes after a pixel. The last pixels are copied by bytes. */
void arm_dsp_one_input(const void *x, const uint8_t *table, void *y, int32_t pixels, int32_t channels)
{
    const int32_t by_bytes = channels > 1 ? 1 : pixels < 3 ? pixels : 3;
    const uint8_t *from = x, *const end = from + pixels, *const last = end - by_bytes;
    const int32_t words = (channels + 3) / 4;
    uint8_t *to = y;
    for (; from != last; from++) {
        const uint8_t *row = row_of(from, table, words);
        uint8_t *at = to;
        int32_t left = words;
        for (; left >= 4; left -= 4) {
            const uint32_t a = dsp_load(row), b = dsp_load(row + 4), c = dsp_load(row + 8), d = dsp_load(row + 12);
            dsp_store(at, a);
            dsp_store(at + 4, b);
            dsp_store(at + 8, c);
            dsp_store(at + 12, d);
            row += 16;
            at += 16;
        }
        for (; left > 0; left--) {
            dsp_store(at, dsp_load(row));
            row += 4;
            at += 4;
        }
        to += channels;
    }
    for (; from != end; from++) {
        const uint8_t *row = row_of(from, table, words);
        for (int32_t c = 0; c < channels; c++) {
            *to++ = row[c];
        }
    }
}
