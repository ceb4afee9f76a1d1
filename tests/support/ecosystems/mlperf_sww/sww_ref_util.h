// What the benchmark's sww_ref_util.h declares, as far as a submitter's files use it.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixed_data.h"
#include "sww_ref_util_submitter.h"

#define EE_MODEL_VERSION_SWW01 "sww01"
#define SWW_WINLEN_SAMPLES 1024
#define SWW_WINSTRIDE_SAMPLES 512
#define SWW_MODEL_INPUT_SIZE 1200
#define NUM_MEL_FILTERS 40
#define DETECT_THRESHOLD threshold
extern int threshold;

typedef enum { Idle, FileCapture, Streaming, Stopping } i2s_state_t;

void ee_print_vals_float(const float *values, uint32_t count);
void ee_serial_callback(char c);
void ee_timestamp(void);
void ee_set_processing_pin_high(void);
void ee_set_processing_pin_low(void);
void ee_setup_i2s_buffers();
void ee_process_chunk_and_cont_capture(void *unused);
