/* What a layer with weights has for each output channel: bias, multiplier and shift, in this order. Zero points that are
 * the same for a whole channel are folded into the bias when the weights are packed.
 */
#ifndef FIRMLINE_GENERIC_CHANNELS_H
#define FIRMLINE_GENERIC_CHANNELS_H

#include <stdint.h>

enum { FL_BIAS, FL_MULTIPLIER, FL_SHIFT, FL_CHANNEL };

#endif
