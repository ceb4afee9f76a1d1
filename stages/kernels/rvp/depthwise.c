#include "depthwise.h"

#include "depthwise_strips.h"

typedef void strip_kernel(const int8_t *strip, int8_t *out, int rows, const int32_t *params, int zero_point);

strip_kernel rvp_depthwise3x3_s1, rvp_depthwise3x3_s1_wide, rvp_depthwise3x3_s2, rvp_depthwise3x3_s2_wide;
strip_kernel rvp_depthwise3x3_s1u, rvp_depthwise3x3_s1u_wide, rvp_depthwise3x3_s2u, rvp_depthwise3x3_s2u_wide;
strip_kernel rvp_depthwise3x3_s1us, rvp_depthwise3x3_s1us_wide, rvp_depthwise3x3_s2us, rvp_depthwise3x3_s2us_wide;

/* `whole`: pixels of a group are aligned registers; otherwise they are anywhere and may be fewer bytes. */
RVP_INLINE void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                          int stride, int whole, strip_kernel *kernel)
{
    const struct rvp_depthwise_geometry *const g = (const struct rvp_depthwise_geometry *)geometry;
    struct strips s = first_strip(x, scratch, g, stride, (g->out_rows - 1) * stride + 3, out, whole);
    const int last = (g->out_columns - 1) * stride + 2 - g->left;
    for (int out_column = 0; out_column < g->out_columns; out_column += 4) {
        complete_strip(&s, x, g, stride, whole, last);
        kernel(s.strip, s.results, g->out_rows, params, (int8_t)g->clip);
        finish_strip(&s, out, g, whole, out_column);
    }
}

/* The strips of a stride, of whole registers or of parts. */
#define STRIPS(name, stride, whole)                                                                             \
    static void strips_##name(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,             \
                              const int32_t *geometry, strip_kernel *kernel)                                    \
    {                                                                                                           \
        depthwise(x, params, out, scratch, geometry, stride, whole, kernel);                                    \
    }

STRIPS(s1, 1, 1)
STRIPS(s2, 2, 1)
STRIPS(s1p, 1, 0)
STRIPS(s2p, 2, 0)

/* The mark of a wide group, in the first rounder: see packing.py. */
static int is_wide(const int32_t *params)
{
    return params[6 * RVP_LANES - 1] < 0;
}

/* The function of a group: of whole registers, of parts. */
#define DEPTHWISE(name, stride)                                                                                 \
    void rvp_depthwise_##name(const void *x, const int32_t *params, void *out, int8_t *scratch,                 \
                              const int32_t *geometry)                                                          \
    {                                                                                                           \
        strips_s##stride(x, params, out, scratch, geometry,                                                     \
                         is_wide(params) ? rvp_depthwise3x3_##name##_wide : rvp_depthwise3x3_##name);           \
    }                                                                                                           \
    void rvp_depthwise_parts_##name(const void *x, const int32_t *params, void *out, int8_t *scratch,           \
                                    const int32_t *geometry)                                                    \
    {                                                                                                           \
        strips_s##stride##p(x, params, out, scratch, geometry,                                                  \
                            is_wide(params) ? rvp_depthwise3x3_##name##_wide : rvp_depthwise3x3_##name);        \
    }

DEPTHWISE(s1, 1)
DEPTHWISE(s2, 2)
DEPTHWISE(s1u, 1)
DEPTHWISE(s2u, 2)
DEPTHWISE(s1us, 1)
DEPTHWISE(s2us, 2)
