#include "depthwise.h"

#include "depthwise_strips.h"

typedef void strip_kernel(const int8_t *strip, int8_t *out, int rows, const int32_t *params, int zero_point);

strip_kernel rvp_depthwise3x3_s1, rvp_depthwise3x3_s1_wide, rvp_depthwise3x3_s2, rvp_depthwise3x3_s2_wide;
strip_kernel rvp_depthwise3x3_s1u, rvp_depthwise3x3_s1u_wide, rvp_depthwise3x3_s2u, rvp_depthwise3x3_s2u_wide;
strip_kernel rvp_depthwise3x3_s1us, rvp_depthwise3x3_s1us_wide, rvp_depthwise3x3_s2us, rvp_depthwise3x3_s2us_wide;

RVP_INLINE void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,
                          const struct rvp_depthwise_geometry *g, int stride, strip_kernel *kernel)
{
    struct strips s = first_strip(x, scratch, g, stride, (g->out_rows - 1) * stride + 3, 0);
    const int last = (g->out_columns - 1) * stride + 2 - g->left;
    for (int out_column = 0; out_column < g->out_columns; out_column += 4) {
        complete_strip(&s, x, g, stride, last);
        kernel(s.strip, s.results, g->out_rows, params, (int8_t)g->clip);
        finish_strip(&s, out, g, out_column);
    }
}

static void depthwise_s1(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                         strip_kernel *kernel)
{
    depthwise(x, params, out, scratch, (const struct rvp_depthwise_geometry *)geometry, 1, kernel);
}

static void depthwise_s2(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                         strip_kernel *kernel)
{
    depthwise(x, params, out, scratch, (const struct rvp_depthwise_geometry *)geometry, 2, kernel);
}

/* The mark of a wide group, in the first rounder: see packing.py. */
static int is_wide(const int32_t *params)
{
    return params[6 * RVP_LANES - 1] < 0;
}

void rvp_depthwise_s1(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1_wide : rvp_depthwise3x3_s1;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2_wide : rvp_depthwise3x3_s2;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s1u(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1u_wide : rvp_depthwise3x3_s1u;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2u(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2u_wide : rvp_depthwise3x3_s2u;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s1us(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s1us_wide : rvp_depthwise3x3_s1us;
    depthwise_s1(x, params, out, scratch, geometry, kernel);
}

void rvp_depthwise_s2us(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *geometry)
{
    strip_kernel *const kernel = is_wide(params) ? rvp_depthwise3x3_s2us_wide : rvp_depthwise3x3_s2us;
    depthwise_s2(x, params, out, scratch, geometry, kernel);
}
