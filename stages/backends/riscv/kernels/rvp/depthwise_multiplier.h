/* Depth multipliers: repeats each input channel in several bytes of a group. */
#pragma once

#include "rvp_intrinsics.h"

/* Masks for the input channels of the group from channel `first` on. Returns the number of these input channels. */
static int fill_masks(int8_t *masks, int first, int bytes, int multiplier)
{
    const int source = first / multiplier;
    int repeated = first - source * multiplier, sources = 0;
    rvp_word mask = 0;
    for (int i = 0; i < bytes; i++) {
        mask |= (rvp_word)1 << (8 * i);
        if (++repeated == multiplier || i + 1 == bytes) {
            rvp_store(masks + sources * RVP_WORD_BYTES, mask);
            mask = 0;
            repeated = 0;
            sources++;
        }
    }
    return sources;
}
