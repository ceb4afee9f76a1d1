/* Shared by all families: RESIZE_BILINEAR of int8. */
#ifndef FIRMLINE_RESIZE_IMAGE_H
#define FIRMLINE_RESIZE_IMAGE_H

#include <stdint.h>

struct fl_resize {
    int32_t width, channels, out_height, out_width;
};

#endif
