/* SignalFilterBank of TFLM, two bins at a time. */
#include "rvp_intrinsics.h"
#include "signal.h"

/* Not all rows of energies are aligned to a register.
 * sum += energies of two bins * low halves of their weights; behind += energies * upper halves. */
RVP_INLINE void add_two(uint64_t *sum, uint64_t *behind, const uint32_t *energy, const int16_t *w)
{
#if __riscv_xlen == 64
    const rvp_word two = rvp_pack(energy[0], energy[1]), both = rvp_load(w);
    *sum = rvp_umar64(*sum, two, both & 0xffff0000ffff);
    *behind = rvp_umar64(*behind, two, rvp_srli32_16(both));
#else
    for (int bin = 0; bin < 2; bin++) {
        *sum += (uint64_t)energy[bin] * (uint16_t)w[2 * bin];
        *behind += (uint64_t)energy[bin] * (uint16_t)w[2 * bin + 1];
    }
#endif
}

RVP_INLINE void bank(const uint32_t *x, const int16_t *w, uint64_t *y, const int32_t *section, int32_t channels)
{
    const int32_t *const first = section, *const last = section + 2 * channels;
    uint64_t sum = 0;
    for (;; section += 2) {
        uint64_t behind = 0;
        const uint32_t *energy = x + section[0];
        for (const uint32_t *const end = energy + section[1]; energy != end; energy += 2, w += 4)
            add_two(&sum, &behind, energy, w);
        if (section != first)
            *y++ = sum;
        if (section == last)
            break;
        sum = behind;
    }
}

void rvp_signal_filter_bank(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters)
{
    const int32_t frames = parameters[0], bins = parameters[1], channels = parameters[2];
    for (int32_t frame = 0; frame < frames; frame++, x += bins, y += channels)
        bank(x, weights, y, parameters + 3, channels);
}
