/* Constants of an output channel of a layer with weights: bias, multiplier and shift, in this order. The terms of zero points
 * are added to the bias when the weights are packed, if they are the same for all outputs of the channel.
 */
#pragma once

#include <stdint.h>

enum { FL_BIAS, FL_MULTIPLIER, FL_SHIFT, FL_CHANNEL };

/* DO(j) for each of the eight columns of a panel. */
#define EACH_COLUMN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
