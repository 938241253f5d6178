#include "requires.h"

#include <stdio.h>
#include <string.h>

#include "store.h"
#include "trace/grammar.h"
#include "trace/verify.h"

static enum sp_verify_code verified(const struct store *s, struct sp_verify *ret)
{
    lseek(s->fd, 0, SEEK_SET);
    sp_verify_fd(s->fd, NULL, ret);
    return ret->code;
}

static void test_writer_finished_trace_is_sound(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    (void)state;
    store_start(&s);
    for (uint64_t i = 0; i < 50000; i++)
        store_open_event(&s, i);
    assert_int_equal(store_finish(&s), 0);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    assert_int_equal(v.fault.line, v.events);
    assert_true(v.blocks > 3);
    store_close(&s);
}

static void test_writer_numbers_are_those_it_returns(void **state)
{
    struct store s = store_open(NULL);
    (void)state;
    store_start(&s);
    for (uint64_t i = 1; i < 10; i++) {
        sp_trace_begin(s.w, SP_KIND_THREAD, SP_LAYER_PYTHON, i, 1, 1);
        assert_int_equal(sp_trace_seq(s.w), i);
        assert_int_equal(sp_trace_end(s.w), i);
    }
    store_close(&s);
}

static void test_writer_cancelled_event_leaves_no_trace(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    (void)state;
    store_start(&s);
    sp_trace_begin(s.w, SP_KIND_OPEN, SP_LAYER_KERNEL, 5, 1, 1);
    sp_trace_string(s.w, "path", "/cancelled");
    sp_trace_cancel(s.w);
    assert_int_equal(sp_trace_seq(s.w), 1);
    assert_int_equal(store_finish(&s), 0);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    char *text = store_text(&s);
    assert_null(strstr(text, "cancelled"));
    free(text);
    store_close(&s);
}

static void test_writer_hostile_bytes_stay_well_formed(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    char bytes[512];
    (void)state;
    store_start(&s);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(round < 256 ? round : rand());
        sp_trace_begin(s.w, SP_KIND_OPEN, SP_LAYER_KERNEL, 0, 1, 1);
        sp_trace_text(s.w, "path", bytes, sizeof bytes);
        sp_trace_end(s.w);
    }
    assert_int_equal(store_finish(&s), 0);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    store_close(&s);
}

static void test_writer_cap_keeps_room_for_losses_and_end(void **state)
{
    static const uint64_t caps[] = {2000, 5000, 100000, 1000000};
    (void)state;
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        const struct sp_trace_options options = {.size_max_bytes = caps[i],
                                                 .checkpoint_bytes = 10000};
        struct store s = store_open(&options);
        struct sp_verify v;
        store_start(&s);
        for (uint64_t n = 0; n < 20000; n++)
            store_open_event(&s, n);
        assert_int_equal(sp_trace_count(s.w, SP_KIND_OPEN), 20000);
        const uint64_t lost = sp_trace_lost_count(s.w);
        assert_true(lost > 0 && lost < 20001);
        assert_int_equal(store_finish(&s), 0);
        assert_true((uint64_t)lseek(s.fd, 0, SEEK_END) <= caps[i] + 2000);
        assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
        assert_int_equal(v.lost, lost);
        store_close(&s);
    }
}

static void test_writer_violation_finds_room_after_noise_filled_the_cap(void **state)
{
    const struct sp_trace_options options = {.size_max_bytes = 100000};
    struct store s = store_open(&options);
    struct sp_verify v;
    (void)state;
    store_start(&s);
    for (uint64_t n = 0; n < 20000; n++)
        store_open_event(&s, n);
    sp_trace_begin(s.w, SP_KIND_VIOLATION, SP_LAYER_KERNEL, 20000, 1, 1);
    sp_trace_string(s.w, "operation", "connect-after-the-flood");
    sp_trace_end(s.w);
    assert_int_equal(store_finish(&s), 0);
    char *text = store_text(&s);
    assert_non_null(strstr(text, "connect-after-the-flood"));
    free(text);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    store_close(&s);
}

/* Of what found no room, a `call` stands for its count, a run for its calls. */
static void test_writer_losses_say_how_many_calls_they_stood_for(void **state)
{
    const struct sp_trace_options options = {.size_max_bytes = 4000};
    static const int32_t ids[] = {1, 2, -2, -1};
    static const uint32_t dt[4];
    struct store s = store_open(&options);
    (void)state;
    store_start(&s);
    while (sp_trace_lost_count(s.w) == 0)
        store_open_event(&s, 0);
    sp_trace_begin(s.w, SP_KIND_CALL, SP_LAYER_PYTHON, 0, 1, 1);
    sp_trace_calls(s.w, 1000);
    sp_trace_end(s.w);
    sp_trace_run(s.w,
                 &(struct sp_trace_run){
                     .pid = 1, .tid = 1, .count = 4, .calls = 2, .ids = ids, .dt = dt});
    store_open_event(&s, 0);
    assert_int_equal(sp_trace_lost_count(s.w), 7);
    assert_int_equal(store_finish(&s), 0);
    char *text = store_text(&s);
    assert_non_null(strstr(text, "\"count\":7,\"reason\":\"size-cap\",\"calls\":1002,"
                                 "\"missing\":7}"));
    free(text);
    store_close(&s);
}

static void test_writer_overlong_event_is_counted_as_lost(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    char *text = malloc(SP_TRACE_LINE_MAX);
    (void)state;
    memset(text, 'x', SP_TRACE_LINE_MAX);
    store_start(&s);
    sp_trace_begin(s.w, SP_KIND_SOURCE, SP_LAYER_SUPERVISOR, 1, 1, 1);
    sp_trace_text(s.w, "text", text, SP_TRACE_LINE_MAX);
    sp_trace_end(s.w);
    store_open_event(&s, 2);
    assert_int_equal(sp_trace_lost_count(s.w), 1);
    assert_int_equal(store_finish(&s), 0);
    free(text);
    text = store_text(&s);
    assert_non_null(strstr(text, "\"count\":1,\"reason\":\"too-long\",\"missing\":1}"));
    free(text);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    store_close(&s);
}

static void test_writer_losses_are_told_by_reason(void **state)
{
    struct store s = store_open(NULL);
    (void)state;
    store_start(&s);
    for (int i = 0; i < 1000; i++) {
        sp_trace_lost(s.w, 2, 0, "ring-full");
        store_open_event(&s, 1);
    }
    sp_trace_lost(s.w, 7, 0, "thread");
    assert_int_equal(store_finish(&s), 0);
    char *text = store_text(&s);
    assert_non_null(strstr(text, "\"count\":2000,\"reason\":\"ring-full\"}"));
    assert_non_null(strstr(text, "\"count\":7,\"reason\":\"thread\"}"));
    assert_non_null(strstr(text, "\"lost\":2007,"));
    free(text);
    store_close(&s);
}

static void test_writer_flush_leaves_a_checkpointed_file(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    (void)state;
    store_start(&s);
    store_open_event(&s, 1);
    sp_trace_flush(s.w, true);
    assert_int_equal(verified(&s, &v), SP_VERIFY_CUT);
    assert_int_equal(v.events, 3);
    const uint64_t bytes = sp_trace_bytes(s.w);
    sp_trace_flush(s.w, true); /* nothing happened since */
    assert_int_equal(sp_trace_bytes(s.w), bytes);
    store_close(&s);
}

static void test_writer_without_a_file_counts(void **state)
{
    struct sp_trace_writer *w;
    (void)state;
    assert_int_equal(sp_trace_writer_new(-1, NULL, &w, NULL), 0);
    struct store s = {.fd = -1, .w = w};
    store_start(&s);
    store_open_event(&s, 1);
    sp_buffer_text(
        sp_trace_value((sp_trace_begin(w, SP_KIND_FILE, SP_LAYER_KERNEL, 1, 1, 1), w),
                       "key"),
        "[]");
    assert_int_equal(sp_trace_end(w), 2);
    sp_trace_lost(w, 3, 0, "ring-full");
    sp_trace_flush(w, true);
    assert_int_equal(store_finish(&s), 0);
    assert_int_equal(sp_trace_count(w, SP_KIND_OPEN), 1);
    assert_int_equal(sp_trace_lost_count(w), 3);
    sp_trace_writer_free(w);
}

struct listener {
    char *text;
    size_t size;
};

static void listen_to(void *context, const char *line, size_t size)
{
    struct listener *l = context;
    assert_int_equal(line[size - 1], '\n');
    l->text = realloc(l->text, l->size + size + 1);
    memcpy(l->text + l->size, line, size);
    l->size += size;
    l->text[l->size] = '\0';
}

static void test_writer_listener_hears_what_is_stored(void **state)
{
    struct listener l = {0};
    const struct sp_trace_options options = {
        .on_line = listen_to, .context = &l, .checkpoint_bytes = 1000};
    struct store s = store_open(&options);
    (void)state;
    store_start(&s);
    for (uint64_t n = 0; n < 100; n++)
        store_open_event(&s, n);
    assert_int_equal(store_finish(&s), 0);
    char *text = store_text(&s);
    assert_string_equal(text, l.text);
    free(text);
    free(l.text);
    store_close(&s);
}

static void test_writer_run_takes_as_many_numbers_as_it_holds(void **state)
{
    struct store s = store_open(NULL);
    struct sp_verify v;
    static int32_t ids[SP_TRACE_RUN_MAX];
    static uint32_t dt[SP_TRACE_RUN_MAX];
    static uint16_t positions[SP_TRACE_RUN_MAX];
    (void)state;
    for (uint32_t i = 0; i < SP_TRACE_RUN_MAX; i++) {
        ids[i] = i % 2 ? -INT32_MAX : INT32_MAX;
        dt[i] = UINT32_MAX - i;
        positions[i] = (uint16_t)i;
    }
    store_start(&s);
    sp_trace_run(s.w, &(struct sp_trace_run){.count = SP_TRACE_RUN_MAX,
                                             .ids = ids,
                                             .dt = dt,
                                             .raised = positions,
                                             .raised_count = SP_TRACE_RUN_MAX,
                                             .resumed = positions,
                                             .resumed_count = SP_TRACE_RUN_MAX});
    assert_int_equal(sp_trace_seq(s.w), 1 + SP_TRACE_RUN_MAX);
    assert_int_equal(store_finish(&s), 0);
    assert_int_equal(verified(&s, &v), SP_VERIFY_SOUND);
    store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_finished_trace_is_sound),
        cmocka_unit_test(test_writer_numbers_are_those_it_returns),
        cmocka_unit_test(test_writer_cancelled_event_leaves_no_trace),
        cmocka_unit_test(test_writer_hostile_bytes_stay_well_formed),
        cmocka_unit_test(test_writer_cap_keeps_room_for_losses_and_end),
        cmocka_unit_test(test_writer_violation_finds_room_after_noise_filled_the_cap),
        cmocka_unit_test(test_writer_losses_say_how_many_calls_they_stood_for),
        cmocka_unit_test(test_writer_overlong_event_is_counted_as_lost),
        cmocka_unit_test(test_writer_losses_are_told_by_reason),
        cmocka_unit_test(test_writer_flush_leaves_a_checkpointed_file),
        cmocka_unit_test(test_writer_without_a_file_counts),
        cmocka_unit_test(test_writer_listener_hears_what_is_stored),
        cmocka_unit_test(test_writer_run_takes_as_many_numbers_as_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
