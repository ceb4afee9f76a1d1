#include "depthwise.h"

#include "depthwise_strips.h"

typedef void strip_kernel(const int8_t *strip, int8_t *out, int rows, const int32_t *params, int zero_point);

RVP_INLINE void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch, const int32_t *geometry,
                          int stride, enum group group, strip_kernel *kernel)
{
    const struct rvp_depthwise_geometry *const g = (const struct rvp_depthwise_geometry *)geometry;
    const int out_columns = group == FEW_CHANNELS && g->half > 0 ? g->half : g->out_columns;
    struct strips s = first_strip(x, scratch, g, stride, (g->out_rows - 1) * stride + 3, out_columns, out, group);
    const int last = (out_columns - 1) * stride + 2 - g->left;
    for (int out_column = 0; out_column < out_columns; out_column += 4) {
        complete_strip(&s, x, g, stride, group, last);
        kernel(s.strip, s.results, g->out_rows, params, (int8_t)g->clip);
        finish_strip(&s, out, g, group, out_column);
    }
}

/* The strips of a stride, of one kind of groups. */
#define STRIPS(name, stride, group)                                                                             \
    static void strips_##name(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,             \
                              const int32_t *geometry, strip_kernel *kernel)                                    \
    {                                                                                                           \
        depthwise(x, params, out, scratch, geometry, stride, group, kernel);                                    \
    }

STRIPS(s1, 1, REGISTERS)
STRIPS(s2, 2, REGISTERS)
STRIPS(s1p, 1, PARTS)
STRIPS(s2p, 2, PARTS)
STRIPS(s1f, 1, FEW_CHANNELS)
STRIPS(s2f, 2, FEW_CHANNELS)

/* How a group is rounded: its marks are in the first multiplier and the first rounder (packing.py). */
RVP_INLINE strip_kernel *kernel_of(const int32_t *params, strip_kernel *once, strip_kernel *narrow, strip_kernel *wide)
{
    if (params[5 * RVP_LANES - 1] < 0) {
        return once;
    }
    return params[6 * RVP_LANES - 1] < 0 ? wide : narrow;
}

/* The functions of a group of one kind, and the same for layers of which all groups are rounded once. */
#define OF_GROUPS(prefix, suffix, name, stride)                                                                 \
    void rvp_depthwise_##prefix##name(const void *x, const int32_t *params, void *out, int8_t *scratch,         \
                                      const int32_t *geometry)                                                  \
    {                                                                                                           \
        strips_s##stride##suffix(x, params, out, scratch, geometry,                                             \
                                 kernel_of(params, rvp_depthwise3x3_##name##_once, rvp_depthwise3x3_##name,     \
                                           rvp_depthwise3x3_##name##_wide));                                    \
    }                                                                                                           \
    void rvp_depthwise_once_##prefix##name(const void *x, const int32_t *params, void *out, int8_t *scratch,    \
                                           const int32_t *geometry)                                             \
    {                                                                                                           \
        strips_s##stride##suffix(x, params, out, scratch, geometry, rvp_depthwise3x3_##name##_once);            \
    }

#define DEPTHWISE(name, stride)                                                                                 \
    strip_kernel rvp_depthwise3x3_##name##_once, rvp_depthwise3x3_##name, rvp_depthwise3x3_##name##_wide;       \
    OF_GROUPS(, , name, stride)                                                                                 \
    OF_GROUPS(parts_, p, name, stride)                                                                          \
    OF_GROUPS(few_, f, name, stride)

DEPTHWISE(s1, 1)
DEPTHWISE(s2, 2)
DEPTHWISE(s1u, 1)
DEPTHWISE(s2u, 2)
DEPTHWISE(s1us, 1)
DEPTHWISE(s2us, 2)
