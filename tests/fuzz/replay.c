/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a target, fuzz_model.c or fuzz_run.c, over files and over what becomes of them when they are damaged, inside one
 * process, so that a million cases take seconds.
 *
 *   replay run FILE...             each file as it is
 *   replay digest FILE...          each file's checksum of all that can be read in it: the same on every machine
 *   replay truncate FILE...        each file cut at every length
 *   replay mutate FILE...          every structural byte, halfword and word set to every extreme;
 *                                  opened anew, and changed under a model that is open
 *   replay havoc SEED COUNT FILE...   COUNT copies of each file, each damaged in 2 to 9 places
 *   replay tiny                    short files made of everything interesting
 *   replay stream [FROM]           files from the standard input, each behind its length in 4 bytes: how
 *                                  tests/support/impossible.py writes them; those before number FROM are passed over
 *
 * Each case lies in a heap block of exactly its size, so that AddressSanitizer sees an overread of
 * one byte.  A case that takes more than 20 seconds of the processor, or 10 minutes, is a hang.  The last line counts
 * the cases.
 */
#include "base/system.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef _WIN32
#include <sys/time.h>
#include <unistd.h>
#endif

#include "fuzz_model.h"

enum { SECONDS_A_CASE = 20, SECONDS_WITH_WAITS = 600, CHANGED_STEPS = 20000 };

#ifdef _WIN32 /* it has no alarm: a hang there is for the caller to see */
enum { SIGALRM = -1, SIGPROF = -2 };
static void watch(void)
{
}
#else
/* From now on; a machine that has much else to do makes no hang. */
static void watch(void)
{
    const struct itimerval limit = {.it_value = {SECONDS_A_CASE, 0}};
    setitimer(ITIMER_PROF, &limit, NULL);
    alarm(SECONDS_WITH_WAITS);
}
#endif

/* ---- naming the case that fails ---- */

static struct {
    const char *mode, *path;
    size_t at;
    uint64_t value;
    uint64_t count;
} now;

static void say_where(void)
{
    fprintf(stderr, "replay: %s %s at %zu value 0x%" PRIx64 " (case %" PRIu64 ")\n", now.mode, now.path, now.at,
            now.value, now.count);
}

static void on_signal(int number)
{
    say_where();
    const bool hang = number == SIGALRM || number == SIGPROF;
    fprintf(stderr, "replay: %s\n", hang ? "HANG" : number == SIGABRT ? "ABORT" : "DEATH");
    signal(number, SIG_DFL);
    raise(hang ? SIGABRT : number);
}

/* Sanitizer runtimes call this before they end the process. */
#if defined(__has_attribute) && __has_attribute(weak)
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
#else
#define __sanitizer_set_death_callback ((void (*)(void (*)(void)))NULL)
#endif

static void begin_case(size_t at, uint64_t value)
{
    now.at = at;
    now.value = value;
    now.count++;
    watch();
}

static void run_case(const uint8_t *data, size_t size, size_t at, uint64_t value)
{
    begin_case(at, value);
    LLVMFuzzerTestOneInput(data, size);
}

/* ---- files ---- */

typedef struct block {
    uint8_t *data;
    size_t size;
} block;

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "replay: %s %s\n", what, which);
    exit(2);
}

static block copy_of(const uint8_t *data, size_t size)
{
    block b = {malloc(size ? size : 1), size};
    if (!b.data)
        fail("no memory for", now.path);
    if (size == 0) { /* a block of no bytes, so that byte 0 is outside it */
        free(b.data);
        b.data = malloc(0);
    } else {
        memcpy(b.data, data, size);
    }
    return b;
}

static block read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("cannot read", path);
    long size = ftell(file);
    rewind(file);
    block b = {malloc(size > 0 ? (size_t)size : 1), (size_t)size};
    if (!b.data || fread(b.data, 1, b.size, file) != b.size)
        fail("cannot read", path);
    fclose(file);
    block exact = copy_of(b.data, b.size);
    free(b.data);
    return exact;
}

/* ---- which bytes are structure ---- */

typedef struct marks {
    uint8_t *is_structure;
    size_t size;
    uint64_t steps;
} marks;

/* Longer vectors are weights; their first bytes stand for the rest. */
enum { LONGEST_MARKED = 256 };

static void mark(marks *m, size_t at, size_t length)
{
    if (at >= m->size)
        return;
    if (length > m->size - at)
        length = m->size - at;
    memset(m->is_structure + at, 1, length);
}

static void mark_table(marks *m, tq_table_id id, const tq_table *table);

static void mark_vector(marks *m, const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    tq_vector vector = tq_get_vector(table, id);
    size_t bytes = (size_t)vector.count * tq_scalar_size[field->scalar];
    if (!vector.at)
        return;
    mark(m, vector.at - 4, 4);
    mark(m, vector.at, bytes < LONGEST_MARKED ? bytes : LONGEST_MARKED);
    for (uint32_t i = 0; i < vector.count && field->shape == TQ_SHAPE_VEC_TABLE; i++) {
        tq_table element = tq_vector_table(&vector, i);
        mark_table(m, field->detail, &element);
    }
}

static void mark_field(marks *m, const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    size_t at = tq_slot_at(table, field->slot);
    if (!at)
        return;
    mark(m, at, tq_scalar_size[field->scalar]);
    if (field->shape == TQ_SHAPE_STRING) {
        tq_bytes string = tq_get_string(table, id);
        if (string.data)
            mark(m, (size_t)(string.data - table->file.data) - 4, 4);
    } else if (field->shape == TQ_SHAPE_TABLE) {
        tq_table inner = tq_get_table(table, id);
        mark_table(m, field->detail, &inner);
    } else if (field->shape == TQ_SHAPE_UNION) {
        tq_union inner = tq_get_union(table, id);
        tq_table_id member = tq_union_member(field->detail, inner.type);
        mark(m, tq_slot_at(table, field->slot - 1u), 1);
        if (member != TQ_TABLE_NONE)
            mark_table(m, member, &inner.value);
    } else if (field->shape != TQ_SHAPE_SCALAR && field->shape != TQ_SHAPE_ENUM) {
        mark_vector(m, table, id);
    }
}

static void mark_table(marks *m, tq_table_id id, const tq_table *table)
{
    if (!table->at || !m->steps)
        return;
    m->steps--;
    mark(m, table->at, 4);
    mark(m, table->vtable, table->vtable_size);
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first; i++)
        mark_field(m, table, i);
}

static uint8_t *structure_of(const tq_model *model)
{
    marks m = {calloc(1, model->file.size), model->file.size, model->file.size};
    if (!m.is_structure)
        fail("no memory for", now.path);
    mark(&m, 0, 8);
    mark_table(&m, TQ_TABLE_Model, &model->root);
    return m.is_structure;
}

/* ---- modes ---- */

static void truncate_file(const block *file)
{
    for (size_t length = 0; length <= file->size; length++) {
        block cut = copy_of(file->data, length);
        run_case(cut.data, cut.size, length, 0);
        free(cut.data);
    }
}

static void put(uint8_t *at, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* The extremes of a word of `width` bytes at `at`: constants, neighbours of what stands there, and
   distances that lead to the ends of the file. */
static size_t extremes(const block *file, size_t at, unsigned width, uint64_t out[24])
{
    uint64_t top = UINT64_C(1) << (8 * width - 1), old = get(file->data + at, width), to_end = file->size - at;
    const uint64_t values[] = {0,
                               1,
                               2,
                               4,
                               top - 1,
                               top,
                               top + 1,
                               2 * top - 1,
                               2 * top - 4,
                               top / 2,
                               old + 1,
                               old - 1,
                               old + 2,
                               old + 4,
                               old - 4,
                               old ^ top,
                               old * 2,
                               file->size,
                               file->size - 4,
                               to_end,
                               to_end - 4,
                               to_end - 1,
                               (uint64_t)0 - at,
                               at};
    size_t count = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint64_t value = values[i] & (2 * top - 1);
        if (value != old)
            out[count++] = value;
    }
    return count;
}

/* One place: every extreme, in a file opened anew and under the model that is open. */
static void mutate_position(const block *file, const tq_model *open, size_t at, unsigned width)
{
    uint64_t values[24], old = get(file->data + at, width);
    size_t count = extremes(file, at, width, values);
    for (size_t i = 0; i < count; i++) {
        put(file->data + at, width, values[i]);
        run_case(file->data, file->size, at, values[i]);
        begin_case(at, values[i]);
        fuzz_walk(open, CHANGED_STEPS);
        put(file->data + at, width, old);
    }
}

static void mutate_file(const block *file)
{
    tq_model model;
    if (tq_model_open((tq_bytes){file->data, file->size}, &tq_default_allocator, &model, NULL) != TQ_OK)
        return; /* a file that is broken already has no structure to break */
    uint8_t *structure = structure_of(&model);
    for (size_t at = 0; at < file->size; at++) {
        static const unsigned widths[] = {1, 2, 4};
        for (size_t w = 0; w < 3; w++)
            if (structure[at] && at % widths[w] == 0 && at + widths[w] <= file->size)
                mutate_position(file, &model, at, widths[w]);
    }
    free(structure);
    tq_model_close(&model);
}

/* xorshift64*: the same cases on every machine. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

static void damage(block *copy, const uint8_t *structure, uint64_t *state)
{
    unsigned width = 1u << draw(state) % 3;
    size_t at = 0;
    for (int attempt = 0; attempt < 32; attempt++) {
        at = (size_t)(draw(state) % copy->size) & ~(size_t)(width - 1);
        if (structure[at])
            break;
    }
    if (at + width > copy->size)
        return;
    uint64_t values[24];
    size_t count = extremes(copy, at, width, values);
    uint64_t value = values[draw(state) % count];
    if (draw(state) % 4 == 0) /* what stands elsewhere in the file */
        value = get(copy->data + draw(state) % (copy->size - width + 1), width);
    put(copy->data + at, width, value);
}

static void havoc_file(const block *file, uint64_t seed, uint64_t count)
{
    tq_model model;
    if (file->size < 8 ||
        tq_model_open((tq_bytes){file->data, file->size}, &tq_default_allocator, &model, NULL) != TQ_OK)
        return;
    uint8_t *structure = structure_of(&model);
    for (uint64_t n = 0; n < count; n++) {
        uint64_t state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + n * UINT64_C(0xD1B54A32D192ED03) + 1;
        block copy = copy_of(file->data, file->size);
        for (uint64_t places = 2 + draw(&state) % 8; places; places--)
            damage(&copy, structure, &state);
        run_case(copy.data, copy.size, (size_t)n, seed);
        free(copy.data);
    }
    free(structure);
    tq_model_close(&model);
}

/* All files of 0 to 64 bytes that repeat one interesting word, with an interesting first word. */
static void run_tiny(void)
{
    static const uint32_t values[] = {0,          1,          2,          3,          4,         5,       6,
                                      8,          12,         16,         32,         60,        64,      0x00040004,
                                      0x00080008, 0x000c0004, 0x00060006, 0xffff,     0xfffe,    0x10000, 0x7fffffff,
                                      0x80000000, 0xfffffffc, 0xfffffff8, 0xffffffff, 0x334c4654};
    enum { COUNT = sizeof values / sizeof *values };
    now.path = "tiny";
    for (size_t size = 0; size <= 64; size++) {
        for (size_t n = 0; n < (size_t)COUNT * COUNT * COUNT; n++) {
            uint8_t bytes[64];
            for (size_t i = 0; i < 64; i++)
                bytes[i] = (uint8_t)(values[i % 8 < 4 ? n / COUNT % COUNT : n / COUNT / COUNT] >> i % 4 * 8);
            put(bytes, 4, values[n % COUNT]);
            block exact = copy_of(bytes, size);
            run_case(exact.data, exact.size, size, n);
            free(exact.data);
        }
    }
}

/* The files of the standard input; `at` in what is said of a failure is the file's number. */
static void run_stream(uint64_t from)
{
    uint8_t head[4];
    now.path = "-";
    for (uint64_t n = 0; fread(head, 1, sizeof head, stdin) == sizeof head; n++) {
        block file = {malloc(get(head, 4) + 1), (size_t)get(head, 4)};
        if (!file.data || fread(file.data, 1, file.size, stdin) != file.size)
            fail("cannot read", "all of a file from the standard input");
        block exact = copy_of(file.data, file.size);
        free(file.data);
        if (n >= from)
            run_case(exact.data, exact.size, (size_t)n, exact.size);
        free(exact.data);
    }
}

/* What cannot be opened has its status. */
static void digest_file(const block *file)
{
    tq_model model;
    tq_error error;
    now.count++;
    if (tq_model_open((tq_bytes){file->data, file->size}, &tq_default_allocator, &model, &error) != TQ_OK) {
        printf("%s\n", tq_status_name(error.status));
        return;
    }
    printf("%016" PRIx64 "\n", fuzz_walk(&model, UINT64_MAX));
    tq_model_close(&model);
}

static int usage(void)
{
    fprintf(stderr, "replay run|digest|truncate|mutate FILE... | havoc SEED COUNT FILE... | tiny | stream [FROM]\n");
    return 2;
}

/* Sanitizers tell of faults themselves.  A stack that is at its end has no room for who tells of it. */
#ifdef _WIN32
static void listen_for_signals(void)
{
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
}
#else
static void listen_for_signals(void)
{
    static uint8_t room[1 << 16];
    const stack_t other = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(say_where);
        return;
    }
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}
#endif

int main(int argc, char **argv)
{
    listen_for_signals();
    now.mode = argc > 1 ? argv[1] : "";
    bool havoc = strcmp(now.mode, "havoc") == 0, tiny = strcmp(now.mode, "tiny") == 0;
    bool digest = strcmp(now.mode, "digest") == 0, stream = strcmp(now.mode, "stream") == 0;
    bool others = strcmp(now.mode, "run") && strcmp(now.mode, "truncate") && strcmp(now.mode, "mutate");
    if (others && !havoc && !tiny && !digest && !stream)
        return usage();
    if (havoc && argc < 5)
        return usage();
    if (strcmp(now.mode, "run") != 0)
        fuzz_rewrites_one_in = 3;
    if (tiny)
        run_tiny();
    if (stream)
        run_stream(argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
    for (int i = havoc ? 4 : 2; i < argc && !tiny && !stream; i++) {
        block file = read_file(now.path = argv[i]);
        if (havoc)
            havoc_file(&file, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
        else if (digest)
            digest_file(&file);
        else if (strcmp(now.mode, "truncate") == 0)
            truncate_file(&file);
        else if (strcmp(now.mode, "mutate") == 0)
            mutate_file(&file);
        else
            run_case(file.data, file.size, 0, 0);
        free(file.data);
    }
    printf("%" PRIu64 " cases\n", now.count);
    return 0;
}
