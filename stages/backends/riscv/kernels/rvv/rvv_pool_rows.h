/* Pooling of NHWC images by rows: include/pool_rows.h. */
#pragma once

#include "pool_rows.h"

fl_pool_by_rows rvv_max_rows_s8, rvv_max_rows_u8, rvv_avg_rows_s8, rvv_avg_rows_u8;
