/* Runs the model on every inference in `inputs.bin` and leaves outputs, counts and traces for the host to read.
 *
 * The files are those of docs/maintainers/contracts.md, "Firmware harness". Inputs are read straight into the arena and outputs are
 * written straight out of it, so nothing is copied inside the measured region.
 */
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "model.h"
#include "model_trace.h"

#ifndef HARNESS_INIT /* defined if the caller of the model provides memory or weights */
#define HARNESS_INIT() model_init()
#endif

#define INPUTS_MAGIC 0x4E494C46u /* 'FLIN' */
#define DONE_MAGIC 0x4E444C46u   /* 'FLDN' */
#define FLAG_TRACE 1u

/* Exit codes other than 0; the host turns them into a message. */
enum { NO_INPUTS = 2, BAD_INPUTS = 3, SHORT_INPUTS = 4, CANNOT_WRITE = 5 };

struct inputs_header {
    uint32_t magic;
    uint32_t inferences;
    uint32_t flags;
    uint32_t reserved;
    uint64_t instruction_limit;
};

/* Bytes of each input and output, passed on the command line from model.json. */
#ifndef MODEL_INPUT0_ROWS
static const uint32_t input_bytes[MODEL_INPUT_COUNT] = {HARNESS_INPUT_BYTES};
#endif
static const uint32_t output_bytes[] = {HARNESS_OUTPUT_BYTES};
static int outputs_file;
#define OUTPUT_COUNT (sizeof output_bytes / sizeof output_bytes[0])

/* Counts of one inference: one per layer, then the total. */
static uint64_t counts[MODEL_LAYER_COUNT + 1];
#define TOTAL MODEL_LAYER_COUNT

static int trace_file = -1;
static unsigned next_trace;
static uint64_t instruction_limit;
static uint64_t layer_start;

static void check(int status, int exit_code)
{
    if (status < 0)
        board_exit(exit_code);
}

/* Arms the watchdog with the remaining instructions of the inference's limit. */
static void arm_watchdog(uint64_t used)
{
    if (instruction_limit != 0)
        board_watchdog(instruction_limit > used ? instruction_limit - used : 1);
}

#ifdef MODEL_ROWS
/* Rows that a layer has made; later rows may take their place. */
static void write_rows(void)
{
    check(board_write(trace_file, model_rows, model_rows_bytes), CANNOT_WRITE);
    model_rows_bytes = 0;
}
#endif

#ifdef MODEL_OUTPUT0_ROWS
static const void *emitted_rows;
static uint32_t emitted_bytes;

/* Notes rows of the output; `model_layer_done`, which follows, writes them. */
static void receive_rows(const MODEL_OUTPUT0_TYPE *rows, unsigned first, unsigned count, void *user)
{
    (void)first;
    (void)user;
    emitted_rows = rows;
    emitted_bytes = count * MODEL_OUTPUT0_ROW_BYTES;
}

static void write_emitted(void)
{
    board_watchdog(0);
    check(board_write(outputs_file, emitted_rows, emitted_bytes), CANNOT_WRITE);
    emitted_bytes = 0;
    arm_watchdog(counts[TOTAL]);
}
#endif

/* Traces are sorted by layer. A trace of `layer` is valid only now, before a later layer reuses its place in the arena. */
static void write_traces(unsigned layer)
{
    for (; next_trace < model_trace_count && model_traces[next_trace].layer == layer; next_trace++)
        check(board_write(trace_file, model_trace_data(&model_traces[next_trace]), model_traces[next_trace].bytes), CANNOT_WRITE);
}

/* Called by model.c after each layer. The counter is read first and last, so what happens in between is not counted. */
void model_layer_done(unsigned layer)
{
    uint64_t now = board_instructions();
    board_layer(-1);
    counts[layer] += now - layer_start; /* a layer that runs by rows is called several times */
    counts[TOTAL] += now - layer_start;
#ifdef MODEL_OUTPUT0_ROWS
    if (emitted_bytes != 0)
        write_emitted();
#endif
    if (trace_file >= 0) {
        board_watchdog(0);
#ifdef MODEL_ROWS
        if (model_rows_bytes != 0)
            write_rows();
#endif
        write_traces(layer);
        arm_watchdog(counts[TOTAL]);
    }
    board_layer((int)layer + 1);
    layer_start = board_instructions();
}

#ifdef MODEL_INPUT0_ROWS
/* Pass the image row by row from the file. Reading is not counted. */
static void run_by_rows(int inputs)
{
    static _Alignas(8) uint8_t row[MODEL_INPUT0_ROW_BYTES];

    for (unsigned i = 0; i < MODEL_INPUT0_ROWS; i++) {
        check(board_read(inputs, row, sizeof row), SHORT_INPUTS);
        board_layer(0);
        layer_start = board_instructions();
        (void)model_push_rows((const void *)row, 1);
        counts[TOTAL] += board_instructions() - layer_start;
        board_layer(-1);
    }
}
#endif

static void run_inference(int inputs_file)
{
    const void *inputs[MODEL_INPUT_COUNT] = {NULL};
    void *outputs[OUTPUT_COUNT] = {NULL};

    for (unsigned i = 0; i <= TOTAL; i++)
        counts[i] = 0;
    next_trace = 0;
    arm_watchdog(0);
#ifdef MODEL_INPUT0_ROWS
    (void)inputs;
    (void)outputs;
    run_by_rows(inputs_file);
#else
    (void)inputs_file;
    board_layer(0);
    layer_start = board_instructions();
    model_run(inputs, outputs);
    counts[TOTAL] += board_instructions() - layer_start;
    board_layer(-1);
#endif
    board_watchdog(0);
}

int main(void)
{
    struct inputs_header header;
    int inputs = board_open_read("inputs.bin");
    int counts_file = board_open_write("counts.bin");

    outputs_file = board_open_write("outputs.bin");
    check(inputs, NO_INPUTS);
    check(outputs_file, CANNOT_WRITE);
    check(counts_file, CANNOT_WRITE);
    check(board_read(inputs, &header, sizeof header), BAD_INPUTS);
    check(header.magic == INPUTS_MAGIC ? 0 : -1, BAD_INPUTS);
    instruction_limit = header.instruction_limit;
    if (header.flags & FLAG_TRACE) {
        trace_file = board_open_write("trace.bin");
        check(trace_file, CANNOT_WRITE);
    }

    HARNESS_INIT();
#ifdef MODEL_OUTPUT0_ROWS
    model_on_rows(receive_rows, NULL);
#endif
    for (uint32_t inference = 0; inference < header.inferences; inference++) {
#ifdef MODEL_STATE_BYTES
        uint32_t first;
        check(board_read(inputs, &first, sizeof first), SHORT_INPUTS);
        if (first)
            model_reset();
#endif
#ifndef MODEL_INPUT0_ROWS
        for (unsigned i = 0; i < MODEL_INPUT_COUNT; i++)
            check(board_read(inputs, model_input(i), input_bytes[i]), SHORT_INPUTS);
#endif
        run_inference(inputs);
#ifndef MODEL_OUTPUT0_ROWS
        for (unsigned i = 0; i < OUTPUT_COUNT; i++)
            check(board_write(outputs_file, model_output(i), output_bytes[i]), CANNOT_WRITE);
#endif
        check(board_write(counts_file, counts, sizeof counts), CANNOT_WRITE);
    }

    uint32_t done[2] = {DONE_MAGIC, board_stack_used()};
    int done_file = board_open_write("done.bin");
    check(done_file, CANNOT_WRITE);
    check(board_write(done_file, done, sizeof done), CANNOT_WRITE);
    board_close(done_file);
    board_close(inputs);
    board_close(outputs_file);
    board_close(counts_file);
    if (trace_file >= 0)
        board_close(trace_file);
    return 0;
}
