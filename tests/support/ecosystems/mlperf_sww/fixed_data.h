#pragma once
#include <stdint.h>

extern const int8_t test_input_class0[1200], test_input_class1[1200], test_input_class2[1200];
extern const int16_t test_wav_marvin[16000], test_wav_long[];
extern const unsigned int test_wav_long_len;
