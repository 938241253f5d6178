#include "requires.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "event/event.h"
#include "supervise/event_stream.h"
#include "trace/format.h"
#include "trace/head.h"

static struct sp_event_stream stream;
static int reading = -1;
static uint64_t seq;

static int set_up(void **state)
{
    (void)state;
    stream = (struct sp_event_stream){.fd = -1, .epoll = -1};
    seq = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sp_event_stream_close(&stream);
    if (reading >= 0)
        close(reading);
    reading = -1;
    return 0;
}

static void open_pipe(void)
{
    int ends[2];
    struct sp_error error;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    reading = ends[0];
    assert_int_equal(sp_event_stream_open(&stream, ends[1], &error), 0);
    assert_int_equal(fcntl(ends[1], F_GETFD), -1); /* it was taken over */
}

/* A line of `size` bytes, its newline included, that takes `count` numbers. */
static void add(size_t size, unsigned count)
{
    static char line[SP_TRACE_LINE_MAX];
    const int n = snprintf(line, sizeof line,
                           "{\"seq\":%llu,\"t\":%llu,\"kind\":\"%s\",\"layer\":"
                           "\"python\",\"pid\":1,\"tid\":1"
                           ",\"n\":%u,\"x\":\"",
                           (unsigned long long)seq, (unsigned long long)seq * 10,
                           count > 1 ? "run" : "open", count);
    memset(line + n, 'x', size - (size_t)n - 3);
    memcpy(line + size - 3, "\"}\n", 3);
    seq += count;
    sp_event_stream_add(&stream, line, size);
}

static void add_end(void)
{
    char line[200];
    const int n = snprintf(line, sizeof line,
                           "{\"seq\":%llu,\"t\":99,\"kind\":\"end\",\"layer\":"
                           "\"supervisor\",\"pid\":1,\"tid\":1}\n",
                           (unsigned long long)seq++);
    sp_event_stream_add(&stream, line, (size_t)n);
}

/* Reads all there is, while more is handed on, and follows the numbers. */
struct got {
    uint64_t lines;
    uint64_t next; /* number that is expected */
    uint64_t told; /* events that `lost` lines tell of */
    bool ended;
};

static void follow(struct got *got)
{
    static char text[2 * SP_TRACE_LINE_MAX];
    size_t size = 0;
    struct sp_head head;
    size_t bad;
    fcntl(reading, F_SETFL, O_NONBLOCK);
    for (;;) {
        const ssize_t n = read(reading, text + size, sizeof text - size);
        if (n <= 0) {
            const size_t before = stream.size;
            sp_event_stream_push(&stream);
            if (stream.size == before)
                break;
            continue;
        }
        size += (size_t)n;
        char *line = text;
        char *newline;
        while ((newline = memchr(line, '\n', size - (size_t)(line - text))) != NULL) {
            assert_true(sp_head_read(line, (size_t)(newline - line), &head, &bad));
            unsigned long long count = 0;
            unsigned long long missing = 0;
            if (head.kind == SP_KIND_LOST) {
                assert_int_equal(
                    sscanf(
                        line + head.size,
                        ",\"count\":%llu,\"reason\":\"slow-reader\",\"missing\":%llu",
                        &count, &missing) > 0,
                    1);
                got->told += count;
            }
            assert_int_equal(head.seq, got->next + missing);
            got->next = head.seq + head.count;
            got->lines++;
            got->ended |= head.kind == SP_KIND_END;
            line = newline + 1;
        }
        size -= (size_t)(line - text);
        memmove(text, line, size);
    }
    assert_int_equal(size, 0); /* no line was cut */
}

static void test_stream_gives_lines_of_any_size_whole(void **state)
{
    (void)state;
    struct got got = {0};
    open_pipe();
    add(100, 1);
    add(4096, 1);
    add(4097, 1);
    add(300000, 1);
    add(SP_TRACE_LINE_MAX, 1);
    add(200, 4096);
    follow(&got);
    assert_int_equal(got.lines, 6);
    assert_int_equal(got.next, seq);
    assert_int_equal(stream.lost, 0);
}

static void test_stream_without_reader_keeps_a_bounded_queue_and_tells(void **state)
{
    (void)state;
    struct got got = {0};
    open_pipe();
    for (int i = 0; i < 200000; i++)
        add(200, i % 7 == 0 ? 50 : 1);
    assert_true(stream.size <= SP_EVENT_STREAM_BYTES);
    assert_true(stream.capacity <= 16u << 20);
    const uint64_t lost = stream.lost;
    assert_true(lost > 0);
    add_end();
    follow(&got);
    assert_true(got.ended);
    assert_int_equal(got.told, lost);
    assert_int_equal(got.next, seq);
    assert_null(stream.data); /* given back */
}

static void test_stream_tells_of_a_loss_once_half_was_read(void **state)
{
    (void)state;
    struct got got = {0};
    open_pipe();
    while (stream.lost == 0)
        add(1000, 1);
    follow(&got);
    assert_int_equal(got.told, 0);
    add(1000, 1);
    follow(&got);
    assert_int_equal(got.told, stream.lost);
    assert_int_equal(got.next, seq);
}

static void test_stream_that_must_ask_never_waits(void **state)
{
    (void)state;
    struct got got = {0};
    open_pipe();
    /* As where the pipe cannot be opened once more: it blocks. */
    stream.way = SP_EVENT_WAY_ASK;
    assert_int_equal(fcntl(stream.fd, F_SETFL, 0), 0);
    const uint64_t began = sp_clock_ns();
    for (int i = 0; i < 3000; i++)
        add(1000, 1);
    assert_true(sp_clock_ns() - began < 5000000000u);
    assert_true(stream.stuck);
    follow(&got);
    assert_int_equal(got.next, seq);
    assert_int_equal(stream.lost, 0);
}

static void test_stream_reader_that_goes_away_is_no_failure(void **state)
{
    (void)state;
    open_pipe();
    close(reading);
    reading = -1;
    signal(SIGPIPE, SIG_IGN);
    add(100000, 1);
    assert_false(sp_event_stream_on(&stream));
    assert_int_equal(stream.failed, 0);
    add(100, 1); /* nobody minds */
}

static void test_stream_finish_counts_what_was_not_taken(void **state)
{
    (void)state;
    open_pipe();
    fcntl(stream.fd, F_SETPIPE_SZ, 4096);
    for (int i = 0; i < 10; i++)
        add(4096, 1);
    const uint64_t began = sp_clock_ns();
    sp_event_stream_finish(&stream, began + 200000000u);
    const uint64_t took = sp_clock_ns() - began;
    assert_true(took >= 200000000u && took < 3000000000u);
    assert_int_equal(stream.lost, 9);
    assert_false(sp_event_stream_on(&stream));
}

static void test_stream_finish_ends_early_for_a_signal(void **state)
{
    (void)state;
    sigset_t set;
    open_pipe();
    add(200000, 1);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGTERM);
    const uint64_t began = sp_clock_ns();
    sp_event_stream_finish(&stream, began + 60000000000u);
    assert_true(sp_clock_ns() - began < 3000000000u);
    int number;
    assert_int_equal(sigwait(&set, &number), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_stream_gives_lines_of_any_size_whole),
        CASE(test_stream_without_reader_keeps_a_bounded_queue_and_tells),
        CASE(test_stream_tells_of_a_loss_once_half_was_read),
        CASE(test_stream_that_must_ask_never_waits),
        CASE(test_stream_reader_that_goes_away_is_no_failure),
        CASE(test_stream_finish_counts_what_was_not_taken),
        CASE(test_stream_finish_ends_early_for_a_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
