/* Requantization with one or two roundings, selected by a field of the layer. */
#pragma once

#include "requantize.h"

static inline int32_t requantize(int32_t x, int32_t multiplier, int32_t shift, int32_t single_rounding)
{
    return single_rounding ? fl_requantize_single(x, multiplier, shift) : fl_requantize_double(x, multiplier, shift);
}
