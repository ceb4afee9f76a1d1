/* Description of an image whose rows are loaded into lines of 16 channels (depthwise_lines.h). */
#ifndef FIRMLINE_MVE_DEPTHWISE_IMAGE_H
#define FIRMLINE_MVE_DEPTHWISE_IMAGE_H

#include <stdint.h>

/* An NHWC image of which a group of channels is taken; `pixel` is the bytes from a pixel to the next. `left` columns and what is missing
 * on the right of a line of `pitch` bytes are outside: `fill` stands there, the zero point as int8. `flip` is 0x80 for uint8
 * activations, which become int8 by it, else 0. */
struct mve_image {
    int32_t height, width, pixel, left, pitch, fill, flip;
};

#endif
