/* Pooling of NHWC images by rows: include/pool_rows.h. */
#pragma once

#include "pool_rows.h"

fl_pool_by_rows arm_dsp_max_rows_s8, arm_dsp_max_rows_u8, arm_dsp_avg_rows_s8, arm_dsp_avg_rows_u8;
