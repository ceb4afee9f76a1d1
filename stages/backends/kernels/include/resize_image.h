/* Shared by all families: RESIZE_BILINEAR of int8. */
#pragma once

#include <stdint.h>

struct fl_resize {
    int32_t width, channels, out_height, out_width;
};
