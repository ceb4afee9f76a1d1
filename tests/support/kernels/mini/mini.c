#include "mini.h"

void mini_gemm(const int8_t *x, const int8_t *w, const int32_t *b, int8_t *y, int rows, int depth, int units)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < units; j++) {
            int32_t sum = b[j];
            for (int k = 0; k < depth; k++)
                sum += x[i * depth + k] * w[j * depth + k];
            y[i * units + j] = mini_clamp(sum >> 7);
        }
    }
}
