// Stands in for the benchmark and the board: plays a recording over I2S, or loads it by commands, and prints what happens.
// Arguments: file of int16 samples, detection threshold.
#include "sww_ref_util.h"

int threshold;
uint32_t g_i2s_chunk_size_bytes = 2048, g_i2s_status, g_first_frame = 1, g_gp_buff_bytes = 64, g_act_idx;
static int16_t buffers[2][1024], block[1024];
int16_t *g_i2s_buffer0 = buffers[0], *g_i2s_buffer1 = buffers[1], *g_i2s_current_buff, *g_wav_block_buff = block;
int g_i2s_buff_sel;
static int8_t features[1200], activations[64];
int8_t *g_model_input = features, *g_act_buff = activations;
i2s_state_t g_i2s_state = Idle;

int8_t const test_input_class0[1200] = {1}, test_input_class1[1200] = {2, 3}, test_input_class2[1200] = {4, 5, 6};
const int16_t test_wav_marvin[16000] = {1000, -1000};
int16_t const test_wav_long[1600] = {300, -200};
const unsigned int test_wav_long_len = 1600;

void ee_print_vals_float(const float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        printf("%.6f ", values[i]);
    printf("\n");
}
static char received[80];
void ee_serial_callback(char c) { strncat(received, &c, 1); }
void ee_timestamp(void) { TH_GPIO_WRITE(timestamp_GPIO_Port, timestamp_Pin, GPIO_PIN_RESET); }
void ee_set_processing_pin_high(void) { TH_GPIO_WRITE(Processing_GPIO_Port, Processing_Pin, GPIO_PIN_SET); }
void ee_set_processing_pin_low(void) { TH_GPIO_WRITE(Processing_GPIO_Port, Processing_Pin, GPIO_PIN_RESET); }
void ee_setup_i2s_buffers() {}
void ee_process_chunk_and_cont_capture(void *unused) { (void)unused; printf("captured\n"); }

static int16_t recording[1 << 16];
static unsigned steps, played;
static uint8_t *target;

void th_hardware_init(void) {}
void th_timer16_start(void) {}
void port_pin(int pin, int level) { printf("pin %d %d\n", pin, level); }
void th_delay_us(int microseconds) { printf("delay %d\n", microseconds); }
uint32_t th_dma_receive(uint8_t *buffer, uint16_t samples)
{
    if (samples != 1024)
        exit(2);
    target = buffer;
    return 0;
}
uint32_t th_dma_stop(void) { return 0; }
uint8_t th_dma_state(void) { return 0; }

static void play(void)
{
    int16_t *to = (int16_t *)target;
    for (int i = 0; i < 512; i++) {
        to[2 * i] = recording[512 * played + i];
        to[2 * i + 1] = 12345; // the right channel has other sound
    }
    played++;
    th_received();
}

// The benchmark's main loop waits here, so the stub acts here.
uint32_t th_uart_receive(uint8_t *data, uint16_t bytes, uint32_t milliseconds)
{
    (void)data, (void)bytes, (void)milliseconds;
    char *arguments[3] = {"", "class1", NULL};
    th_run_model_on_test_data(arguments);
    arguments[1] = NULL;
    th_run_extraction(arguments);
    th_infer_static_wav(arguments);
    for (unsigned i = 0; i < steps; i++) {
        memcpy(buffers[0], recording + 512 * i, 1024);
        th_extract_features_on_chunk(arguments);
    }
    g_i2s_state = FileCapture;
    th_received();
    memset(features, 0, sizeof features);
    memset(block, 0, sizeof block);
    g_first_frame = 1;
    g_i2s_state = Streaming;
    g_i2s_current_buff = buffers[0];
    th_dma_receive(target = (uint8_t *)buffers[0], 1024);
    for (unsigned i = 0; i < steps; i++) {
        printf("step %u\n", i);
        play();
        printf("window");
        for (int j = 0; j < 1200; j++)
            printf(" %d", features[j]);
        printf("\nscore %d\n", activations[i]);
    }
    g_i2s_state = Stopping;
    th_received();
    printf("idle %d\n", g_i2s_state == Idle);
    exit(0);
}

int sww_main(void);

int main(int count, char *arguments[])
{
    FILE *file = count == 3 ? fopen(arguments[1], "rb") : NULL;
    if (!file)
        return 1;
    steps = (unsigned)fread(recording, 2, 1 << 16, file) / 512;
    threshold = atoi(arguments[2]);
    return sww_main();
}
