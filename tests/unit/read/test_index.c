/* Random access gives what reading in order gives, on a trace with many runs. */
#include "requires.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "read/index.h"
#include "read/search.h"
#include "read/summary.h"
#include "trace/writer.h"

#define LINES 500

static int make_trace(void)
{
    static int32_t ids[SP_TRACE_RUN_MAX];
    static uint32_t dt[SP_TRACE_RUN_MAX];
    static const uint16_t raised[] = {1};
    struct sp_trace_writer *w;
    const int fd = memfd_create("trace", MFD_CLOEXEC);
    assert_true(fd >= 0);
    const struct sp_trace_options options = {.checkpoint_bytes = 9000};
    assert_int_equal(sp_trace_writer_new(dup(fd), &options, &w, NULL), 0);
    sp_trace_begin(w, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, 1, 1);
    sp_trace_end(w);
    for (uint32_t id = 1; id < 50; id++) {
        sp_trace_begin(w, SP_KIND_FUNCTION, SP_LAYER_PYTHON, 0, 1, 1);
        sp_trace_uint(w, "id", id);
        sp_trace_string(w, "name", "f");
        sp_trace_end(w);
    }
    for (uint32_t i = 0; i < SP_TRACE_RUN_MAX; i++) {
        ids[i] = (int32_t)(i % 60 + 1) * (i % 2 ? -1 : 1);
        dt[i] = i;
    }
    srand(2);
    for (uint64_t i = 0; i < LINES; i++) {
        if (i % 3 == 0) {
            const uint32_t count = 2 + (uint32_t)rand() % 300;
            sp_trace_run(w, &(struct sp_trace_run){.t_ns = i,
                                                   .pid = 1,
                                                   .tid = 1,
                                                   .count = count,
                                                   .ids = ids,
                                                   .dt = dt,
                                                   .raised = raised,
                                                   .raised_count = 1});
        } else {
            sp_trace_begin(w, SP_KIND_OPEN, SP_LAYER_KERNEL, i, 1, 1);
            sp_trace_string(w, "path", i % 2 ? "/a" : "/b");
            sp_trace_string(w, "op", i % 2 ? "read" : "write");
            sp_trace_end(w);
        }
    }
    sp_trace_begin_end(w, LINES, 1);
    assert_int_equal(sp_trace_finish(w, NULL), 0);
    sp_trace_writer_free(w);
    return fd;
}

/* What identifies an event, as text. */
static void describe(const struct sp_read_event *e, char *to, size_t size)
{
    struct sp_buffer b;
    sp_buffer_init(&b, 1u << 20);
    sp_read_event_json(e, &b);
    assert_true(b.size < size);
    memcpy(to, b.data, b.size);
    to[b.size] = '\0';
    sp_buffer_release(&b);
}

static void test_index_agrees_with_reading_in_order(void **state)
{
    const int fd = make_trace();
    struct sp_index *x;
    struct sp_reader *r;
    struct sp_fault fault;
    struct sp_read_event e;
    uint64_t count = 0;
    (void)state;
    assert_int_equal(sp_index_open_fd(dup(fd), &x, &fault), 0);
    assert_int_equal(sp_index_build(x, &fault), 0);
    assert_int_equal(sp_index_build(x, &fault), 0); /* once is enough */
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(sp_reader_open_fd(fd, &r, &fault), 0);
    while (sp_reader_next(r, &e, &fault) == 1) {
        char in_order[1024];
        char by_position[1024];
        describe(&e, in_order, sizeof in_order);
        assert_int_equal(sp_index_get(x, count++, &e, &fault), 0);
        describe(&e, by_position, sizeof by_position);
        assert_string_equal(in_order, by_position);
    }
    assert_int_equal(count, sp_index_count(x));
    assert_false(sp_reader_was_cut(r));
    for (int i = 0; i < 20000; i++) {
        const uint64_t at = (uint64_t)rand() % count;
        assert_int_equal(sp_index_get(x, at, &e, &fault), 0);
        assert_int_equal(e.seq, at);
    }
    sp_reader_free(r);
    sp_index_free(x);
}

static void test_index_positions_are_all_events_of_the_kind(void **state)
{
    struct sp_index *x;
    struct sp_fault fault;
    struct sp_read_event e;
    uint64_t total = 0;
    static const char *const kinds[] = {"start",  "function",   "open", "call",
                                        "return", "checkpoint", "end",  "import"};
    (void)state;
    assert_int_equal(sp_index_open_fd(make_trace(), &x, &fault), 0);
    assert_int_equal(sp_index_build(x, &fault), 0);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t *positions = NULL;
        size_t count = 0;
        const struct sp_text kind = {kinds[k], (uint32_t)strlen(kinds[k])};
        const struct sp_question question = {
            .kinds = &kind, .kinds_count = 1, .until_ns = UINT64_MAX};
        assert_int_equal(sp_search(x, &question, NULL, 0, &positions, &count, &fault),
                         0);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(sp_index_get(x, positions[i], &e, &fault), 0);
            assert_int_equal(e.kind, sp_read_kind_find(kinds[k]));
        }
        total += count;
        free(positions);
    }
    assert_int_equal(total, sp_index_count(x));
    sp_index_free(x);
}

static void test_summary_adds_up(void **state)
{
    struct sp_reader *r;
    struct sp_summary s;
    struct sp_fault fault;
    struct sp_read_event e;
    (void)state;
    const int fd = make_trace();
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(sp_reader_open_fd(fd, &r, &fault), 0);
    sp_summary_init(&s);
    while (sp_reader_next(r, &e, &fault) == 1)
        sp_summary_add(&s, &e);
    assert_int_equal(s.counts[SP_KIND_FUNCTION], 49);
    assert_int_equal(s.read.count, 1);
    assert_int_equal(s.changed.count, 1);
    assert_int_equal(s.read.total + s.changed.total, s.counts[SP_KIND_OPEN]);
    uint32_t place;
    assert_true(sp_tally_find(&s.read, "/a", 2, &place));
    uint64_t sum = 0;
    for (int kind = 0; kind < SP_SUMMARY_KINDS; kind++)
        sum += s.counts[kind];
    assert_int_equal(sum, s.events);
    assert_true(s.end.size > 0);
    sp_summary_release(&s);
    sp_reader_free(r);
}

static void test_tally_is_bounded(void **state)
{
    struct sp_tally t;
    char text[32];
    (void)state;
    sp_tally_init(&t);
    for (unsigned i = 0; i < SP_TALLY_ITEMS_MAX + 1000; i++)
        sp_tally_add(&t, text, (size_t)sprintf(text, "item %u", i), 2);
    sp_tally_add(&t, "item 7", 6, 5);
    assert_int_equal(t.count, SP_TALLY_ITEMS_MAX);
    assert_int_equal(t.unlisted, 2000);
    assert_int_equal(t.items[7].count, 7);
    assert_int_equal(t.total, 2 * (SP_TALLY_ITEMS_MAX + 1000) + 5);
    sp_tally_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_agrees_with_reading_in_order),
        cmocka_unit_test(test_index_positions_are_all_events_of_the_kind),
        cmocka_unit_test(test_summary_adds_up),
        cmocka_unit_test(test_tally_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
