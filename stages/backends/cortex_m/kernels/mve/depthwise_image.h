/* Description of an image whose rows are loaded into lines of 16 channels (depthwise_lines.h). */
#pragma once

#include <stdint.h>

/* A group of channels of an NHWC image. `pixel` is the distance of pixels in bytes. The `left` columns, and the rest of a line of `pitch`
 * bytes on the right, are padding: `fill`, the zero point as int8. `flip` is 0x80 to make uint8 int8, else 0.
 */
struct mve_image {
    int32_t height, width, pixel, left, pitch, fill, flip;
};
