/* TFLM's signal operators on channels, with CLZ32. */
#include "signal_channels.h"

#include "rvp_intrinsics.h"

#define CHANNELS(name) rvp_signal_##name
#define LEADING_ZEROS(x) ((int32_t)rvp_clz32(x))
#include "signal_channels_image.h"
