// Stands in for the benchmark: loads the test's input as its runner does, infers three times, reads what is sent.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internally_implemented.h"
#include "api/submitter_implemented.h"
#include "data.h"
#include "port.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INPUT JOIN(NAME, _test_input0)
#define OUTPUT JOIN(NAME, _test_output0)

static uint8_t buffer[65536];
static size_t used;
static char sent[65536];
static size_t at;
static char command[16];

size_t ee_get_buffer(uint8_t *to, size_t most)
{
    size_t n = most < used ? most : used;
    if (to)
        memcpy(to, buffer, n);
    return n;
}
uint8_t *ee_get_buffer_pointer() { return buffer; }
void ee_serial_command_parser_callback(char *text) { strcpy(command, text); }

extern "C" {
void port_initialize(void) {}
void port_put(char c) { sent[at++] = c; }
char port_get(void) { return '%'; }
unsigned long port_microseconds(void) { static unsigned long now = 7; return now++; }
void port_timestamp_pin(int) {}
}

static void fail(const char *why)
{
    printf("%s: %s\n", why, sent);
    exit(1);
}

int main()
{
    const size_t inputs = sizeof INPUT / sizeof INPUT[0][0], outputs = sizeof OUTPUT / sizeof OUTPUT[0][0];
    th_serialport_initialize();
    th_timestamp_initialize();
    th_final_initialize();
    if (!strstr(sent, "m-timestamp-mode-performance\r\nm-lap-us-7\r\n"))
        fail("no timestamp");
    th_load_tensor();
    if (!strstr(sent, "e-["))
        fail("no error for a buffer that is empty");
#if defined(KIND_PIXELS)
    for (size_t i = 0; i < inputs; i++)
        buffer[i] = (uint8_t)(INPUT[0][i] + 128);
    used = inputs;
#elif defined(KIND_FEATURES)
    for (size_t i = 0; i < inputs; i++) {
        float value = JOIN(MACRO, _INPUT0_SCALE) * (INPUT[0][i] - JOIN(MACRO, _INPUT0_ZERO_POINT));
        memcpy(buffer + 4 * i, &value, 4);
    }
    used = 4 * inputs;
#else
    memcpy(buffer, INPUT, used = inputs);
#endif
    th_load_tensor();
    th_pre();
    for (int i = 0; i < 3; i++)
        th_infer();
    th_post();
    at = 0;
    memset(sent, 0, sizeof sent);
    th_results();
    if (strncmp(sent, "m-results-[", 11))
        fail("no results");
    char *next = sent + 11;
    float sum = 0.0f;
    for (size_t i = 0; i < outputs; i++) {
        float value = JOIN(MACRO, _OUTPUT0_SCALE) * (OUTPUT[0][i] - JOIN(MACRO, _OUTPUT0_ZERO_POINT));
#if defined(KIND_FEATURES)
        float by = value - JOIN(MACRO, _INPUT0_SCALE) * (INPUT[0][i] - JOIN(MACRO, _INPUT0_ZERO_POINT));
        sum += by * by / outputs;
#else
        if (fabsf(strtof(next, &next) - value) > 0.00051f)
            fail("another value");
        next++;
#endif
    }
#if defined(KIND_FEATURES)
    if (fabsf(strtof(next, &next) - sum) > 0.0011f)
        fail("another score");
#else
    (void)sum;
#endif
    if (!strstr(sent, "]\r\n"))
        fail("no end");
    char text[] = "infer 1";
    th_command_ready(text);
    if (strcmp(command, "infer 1"))
        fail("no command");
    puts("as expected");
    return 0;
}
