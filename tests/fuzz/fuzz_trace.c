/* Everything that reads traces, on any bytes: nothing crashes, and what one reader says holds for
 * the others.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "read/calls.h"
#include "read/index.h"
#include "read/processes.h"
#include "read/reader.h"
#include "read/search.h"
#include "read/summary.h"
#include "read/uses.h"
#include "trace/grammar.h"
#include "trace/head.h"
#include "trace/recode.h"
#include "trace/verify.h"

struct outcome {
    int result; /* of the last next(), -1 for a trace that cannot be opened */
    uint64_t events;
};

/* What the views make of it. */
struct views {
    struct sp_uses files;
    struct sp_uses network;
    struct sp_processes processes;
    struct sp_calls calls;
    int result; /* of the calls */
};

static void begin_views(struct views *v)
{
    sp_uses_init(&v->files);
    sp_uses_init(&v->network);
    sp_processes_init(&v->processes);
    sp_calls_init(&v->calls);
    v->result = 0;
}

static void add_to_views(struct views *v, const struct sp_read_event *e)
{
    struct sp_fault fault;
    sp_files_add(&v->files, e);
    sp_network_add(&v->network, e);
    sp_processes_add(&v->processes, e);
    if (v->result == 0)
        v->result = sp_calls_add(&v->calls, e, &fault);
}

/* Every process and every node is found once, and nothing is longer than what holds it. */
static void end_views(struct views *v, const struct sp_functions *functions)
{
    struct sp_fault fault;
    unsigned depth = 0;
    uint32_t count = 0;
    for (uint32_t i = sp_processes_first(&v->processes); i != SP_PROCESSES_NONE;
         i = sp_processes_behind(&v->processes, i, &depth), count++)
        DEMAND(depth <= v->processes.count);
    DEMAND(count == v->processes.count);
    DEMAND(sp_calls_finish(&v->calls, functions, &fault) == 0);
    for (uint32_t i = 0; i < v->calls.count; i++) {
        const struct sp_call_node *node = &v->calls.nodes[i];
        (void)sp_calls_function(&v->calls, node);
        (void)sp_calls_caller(&v->calls, node);
        DEMAND(v->calls.form == SP_CALLS_GRAPH || node->self_ns <= node->total_ns);
    }
    sp_uses_release(&v->files);
    sp_uses_release(&v->network);
    sp_processes_release(&v->processes);
    sp_calls_release(&v->calls);
}

static struct outcome read_in_order(int fd, uint64_t size)
{
    struct outcome out = {.result = -1};
    struct sp_reader *r;
    struct sp_summary summary;
    struct views views;
    struct sp_read_event e;
    struct sp_fault fault = {0};
    struct sp_buffer json;
    lseek(fd, 0, SEEK_SET);
    const int copy = dup(fd);
    if (sp_reader_open_fd(copy, &r, &fault) < 0) {
        close(copy);
        DEMAND(fault.byte <= size);
        return out;
    }
    sp_summary_init(&summary);
    begin_views(&views);
    sp_buffer_init(&json, 64u << 20);
    while ((out.result = sp_reader_next(r, &e, &fault)) > 0) {
        out.events++;
        sp_summary_add(&summary, &e);
        add_to_views(&views, &e);
        sp_buffer_clear(&json);
        sp_read_event_json(&e, &json);
        DEMAND(json.failed || json.data[json.size - 1] == '\n');
    }
    if (out.result < 0)
        DEMAND(fault.message[0] != '\0' && fault.byte <= size);
    DEMAND(summary.events == out.events);
    end_views(&views, sp_reader_functions(r));
    sp_buffer_release(&json);
    sp_summary_release(&summary);
    sp_reader_free(r);
    return out;
}

static void read_by_position(int fd, const struct outcome *in_order)
{
    struct sp_index *x;
    struct sp_read_event e;
    struct sp_fault fault;
    const int copy = dup(fd);
    if (sp_index_open_fd(copy, &x, &fault) < 0) {
        DEMAND(in_order->result < 0);
        close(copy);
        return;
    }
    /* The index looks at heads only: it may take what reading in order refuses. */
    if (sp_index_build(x, &fault) == 0) {
        const uint64_t count = sp_index_count(x);
        DEMAND(in_order->result < 0 || count == in_order->events);
        const uint64_t steps = count < 300 ? count : 300;
        for (uint64_t i = 0; i < steps; i++)
            if (sp_index_get(x, (i * 7919) % count, &e, &fault) < 0)
                DEMAND(in_order->result < 0);
        uint64_t *positions = NULL;
        size_t found;
        const struct sp_text kind = {"call", 4};
        const struct sp_question question = {
            .kinds = &kind, .kinds_count = 1, .until_ns = 1u << 30, .text = {"a", 1}};
        if (sp_search(x, &question, NULL, 0, &positions, &found, &fault) == 0)
            free(positions);
    } else {
        DEMAND(in_order->result < 0);
    }
    sp_index_free(x);
}

/* Checking a line from behind its head finds what checking all of it finds. */
static void check_grammar(const uint8_t *data, size_t size)
{
    static const char padding[SP_GRAMMAR_PADDING] = "\n";
    struct sp_buffer b;
    sp_buffer_init(&b, size + sizeof padding);
    sp_buffer_append(&b, data, size);
    sp_buffer_append(&b, padding, sizeof padding);
    for (size_t start = 0; start < size;) {
        const char *line = b.data + start;
        const char *newline = memchr(line, '\n', b.size - start);
        struct sp_head head;
        size_t bad;
        size_t bad_from;
        const size_t whole = (size_t)(newline - line);
        if (sp_head_read(line, whole, &head, &bad)) {
            const bool good = sp_grammar_check(line, whole, &bad);
            DEMAND(good == sp_grammar_check_from(line, whole, head.size, &bad_from));
            DEMAND(bad == bad_from);
        }
        start += whole + 1;
    }
    sp_buffer_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sp_verify verify;
    check_grammar(data, size);
    const int fd = memfd_create("input", MFD_CLOEXEC);
    DEMAND(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    lseek(fd, 0, SEEK_SET);
    sp_verify_fd(fd, NULL, &verify);
    /* Places are those in the text, which a compressed file is shorter than. */
    const uint64_t bound = sp_recode_is_packed(fd) ? UINT64_MAX : size;
    DEMAND(verify.fault.byte <= bound);
    const struct outcome in_order = read_in_order(fd, bound);
    read_by_position(fd, &in_order);
    close(fd);
    return 0;
}
