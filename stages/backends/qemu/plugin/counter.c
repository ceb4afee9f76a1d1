/* Counts the instructions of an Arm program in QEMU, exactly, and serves the count to the program while it runs.
 *
 *     qemu-system-arm ... -plugin libcounter.so[,profile=FILE][,most=N][,timed=on]
 *
 * The program talks to it through hint instructions, which do nothing on a real core (Thumb `dbg #n`, A64
 * `hint #64+n`), and through the file counter.bin {uint64 count, uint64 limit} in the current directory:
 *
 *     STOP   stop counting; `count` is now what ran before this instruction
 *     GO     count again, from the instruction after this one
 *     ARM    end the emulation when `limit` more instructions have run; 0 disarms
 *     FAULT  first instruction of a fault handler: print the block that ran before it
 *
 * With `timed`, timing.c estimates cycles too, by a table of instructions: a record of its log for each STOP.
 *
 * `most` limits the program as a whole, from its first instruction. So a hang before the program arms a limit ends too.
 *
 * Counting is by translation block: the callback before a block adds all its instructions, and a marker inside the block subtracts
 * those that are still to come. A block that an exception leaves early is counted whole; counts are read only by
 * programs that go on. An instruction that an IT block skips counts; a load of several registers counts as one.
 *
 *     counted = ran - excluded          ran   ──────┬─────────────┬──────────▶
 *                                                 STOP    GO: excluded += ran - stopped
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu_api.h"
#include "timing.h"

enum marker { STOP, GO, ARM, FAULT, MARKERS };

/* The process ends with this status when a limit is reached; stages/backends/qemu/fault.py knows it. */
enum { LIMIT_EXIT_CODE = 98 };
enum { COUNT_AT = 0, LIMIT_AT = 8 };

EXPORT int qemu_plugin_version = 1;

struct block {
    uint64_t address;
    uint64_t instructions;
    uint64_t runs; /* while counting */
    const struct block_timing *timing;
    struct block *next;
};

struct marked {
    enum marker marker;
    uint64_t remaining; /* instructions of the block from this one on, this one included */
    const struct block *block;
};

static int interface_version;
static bool is_a64;
static int counter_file = -1;
static const char *profile;
static struct block *blocks;

static uint64_t ran;
static uint64_t excluded;
static uint64_t stopped_at;
static bool counting = true;
static bool is_timed;
static uint64_t deadline = UINT64_MAX, most = UINT64_MAX; /* in terms of `ran` */
static const struct block *current, *previous;

/* The newest interface version of both this QEMU and this code. It is set before QEMU reads the variable. */
__attribute__((constructor)) static void choose_version(void)
{
    qemu_plugin_version = qemu_plugin_n_vcpus ? 1 : 2;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "counter plug-in: %s\n", what);
    _exit(EXIT_FAILURE);
}

static _Noreturn void limit_reached(const struct block *block)
{
    fprintf(stderr, "%s pc=%016" PRIx64 "\n", ran > deadline ? "LIMIT" : "MOST", block->address);
    _exit(LIMIT_EXIT_CODE);
}

static void before_block(unsigned vcpu, void *data)
{
    (void)vcpu;
    struct block *block = data;
    ran += block->instructions;
    block->runs += counting;
    previous = current;
    current = block;
    if (ran > deadline || ran > most)
        limit_reached(block);
    if (is_timed && counting)
        timing_runs(block->timing);
}

static void arm(uint64_t now)
{
    uint64_t limit;
    if (pread(counter_file, &limit, sizeof limit, LIMIT_AT) != sizeof limit)
        fail("counter.bin has no limit");
    deadline = limit == 0 ? UINT64_MAX : now + limit;
}

static void at_marker(unsigned vcpu, void *data)
{
    (void)vcpu;
    const struct marked *at = data;
    uint64_t before = ran - at->remaining;
    uint64_t count = before - excluded;

    switch (at->marker) {
    case STOP:
        if (is_timed && counting)
            timing_stops(at->block->timing, at->block->instructions - at->remaining, count);
        counting = false;
        stopped_at = before;
        if (pwrite(counter_file, &count, sizeof count, COUNT_AT) != sizeof count)
            fail("cannot write counter.bin");
        break;
    case GO:
        counting = true;
        excluded += before + 1 - stopped_at;
        if (is_timed)
            timing_goes_on(at->block->timing, at->block->instructions - at->remaining);
        break;
    case ARM:
        arm(before + 1);
        break;
    case FAULT:
        fprintf(stderr, "BEFORE pc=%016" PRIx64 "\n", previous ? previous->address : 0);
        break;
    case MARKERS:
        break;
    }
}

/* The first four bytes of an instruction, little-endian; 0 when it is shorter. If an instruction ends two
 * bytes before the end of a page, QEMU also reads the next instruction and includes it: the size may be two too large.
 */
static uint32_t instruction_word(const struct qemu_plugin_insn *insn)
{
    uint32_t word = 0;
    if (qemu_plugin_insn_size(insn) < sizeof word)
        return 0;
    if (interface_version >= 3) { /* copies into a buffer */
        size_t (*copy)(const struct qemu_plugin_insn *, void *, size_t);
        *(void **)&copy = (void *)qemu_plugin_insn_data;
        copy(insn, &word, sizeof word);
    } else {
        memcpy(&word, qemu_plugin_insn_data(insn), sizeof word);
    }
    return word;
}

/* The marker that `word` encodes, or -1. Thumb DBG is F3AF 80Fn, its first halfword first; A64 HINT is D503201F | n << 5. */
static int marker_of(uint32_t word)
{
    int number = -1;
    if (is_a64 && (word & 0xfffff01f) == 0xd503201f)
        number = (int)(word >> 5 & 127) - 64;
    if (!is_a64 && (word & 0xfff0ffff) == 0x80f0f3af)
        number = (int)(word >> 16 & 15);
    return number < MARKERS ? number : -1;
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    struct block *block = allocate(sizeof *block);
    size_t count = qemu_plugin_tb_n_insns(tb);
    block->address = qemu_plugin_tb_vaddr(tb);
    block->instructions = count;
    block->timing = is_timed ? timing_of(tb) : NULL;
    block->next = blocks;
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, before_block, QEMU_PLUGIN_CB_NO_REGS, block);

    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        int marker = marker_of(instruction_word(insn));
        if (marker < 0)
            continue;
        struct marked *marked = allocate(sizeof *marked);
        marked->marker = (enum marker)marker;
        marked->remaining = count - i;
        marked->block = block;
        qemu_plugin_register_vcpu_insn_exec_cb(insn, at_marker, QEMU_PLUGIN_CB_NO_REGS, marked);
    }
}

/* One line for each block that ran while counting: address of its first instruction, instructions, runs. */
static void write_profile(qemu_plugin_id_t id, void *data)
{
    (void)id;
    (void)data;
    FILE *file = fopen(profile, "w");
    if (file == NULL)
        fail("cannot write the profile");
    for (const struct block *block = blocks; block != NULL; block = block->next)
        if (block->runs > 0)
            fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->instructions, block->runs);
    fclose(file);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    interface_version = info->version.cur;
    is_a64 = strcmp(info->target_name, "aarch64") == 0;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "profile=", 8) == 0)
            profile = argv[i] + 8;
        else if (strncmp(argv[i], "most=", 5) == 0)
            most = strtoull(argv[i] + 5, NULL, 10);
        else if (strcmp(argv[i], "timed=on") == 0)
            is_timed = true;
    if (is_timed)
        timing_begin();

    const uint64_t empty[2] = {0, 0};
    counter_file = open("counter.bin", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (counter_file < 0 || pwrite(counter_file, empty, sizeof empty, 0) != sizeof empty)
        fail("cannot create counter.bin");

    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    if (profile != NULL)
        qemu_plugin_register_atexit_cb(id, write_profile, NULL);
    return 0;
}
