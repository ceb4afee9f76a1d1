/* Constants of an output channel of a layer with weights: bias, multiplier and shift, in this order. The terms of zero points
 * are added to the bias when the weights are packed, if they are the same for all outputs of the channel.
 */
#pragma once

#include <stdint.h>

enum { FL_BIAS, FL_MULTIPLIER, FL_SHIFT, FL_CHANNEL };
