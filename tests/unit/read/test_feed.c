#include "requires.h"

#include <string.h>

#include "read/feed.h"
#include "trace/format.h"

#define START                                                                          \
    "{\"seq\":0,\"t\":0,\"kind\":\"start\",\"layer\":\"supervisor\",\"pid\":1,"        \
    "\"tid\":1,\"format\":1}\n"
#define FUNCTION                                                                       \
    "{\"seq\":1,\"t\":1,\"kind\":\"function\",\"layer\":\"python\",\"pid\":1,"         \
    "\"tid\":1,\"id\":7,\"name\":\"work\",\"module\":\"m\"}\n"
#define RUN                                                                            \
    "{\"seq\":2,\"t\":5,\"kind\":\"run\",\"layer\":\"python\",\"pid\":1,\"tid\":1,"    \
    "\"n\":3,\"f\":[7,8,-8],\"dt\":[1,2,3],\"raised\":[2]}\n"
#define END                                                                            \
    "{\"seq\":5,\"t\":9,\"kind\":\"end\",\"layer\":\"supervisor\",\"pid\":1,\"tid\":"  \
    "1,"                                                                               \
    "\"status\":\"ok\"}\n"

static struct sp_feed *feed;
static struct sp_read_event event;
static struct sp_fault fault;

static int set_up(void **state)
{
    (void)state;
    feed = sp_feed_new();
    return feed == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    sp_feed_free(feed);
    return 0;
}

static void put(const char *text)
{
    assert_true(sp_feed_put(feed, text, strlen(text)));
}

static void test_feed_gives_events_whatever_the_pieces(void **state)
{
    (void)state;
    static const char text[] = START FUNCTION RUN END;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        uint64_t seq = 0;
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            const size_t left = sizeof text - 1 - at;
            assert_true(sp_feed_put(feed, text + at, left < piece ? left : piece));
            while (sp_feed_next(feed, &event, &fault) > 0)
                assert_int_equal(event.seq, seq++);
        }
        assert_int_equal(seq, 6);
    }
}

static void test_feed_run_is_given_as_calls_while_more_comes(void **state)
{
    (void)state;
    put(START FUNCTION RUN);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sp_feed_next(feed, &event, &fault), 1);
    assert_int_equal(event.kind, SP_KIND_CALL);
    assert_int_equal(event.t_ns, 6);
    assert_memory_equal(event.function->name.data, "work", 4);
    static char more[1 << 20]; /* moves what the run stood in */
    memset(more, ' ', sizeof more);
    assert_true(sp_feed_put(feed, more, sizeof more));
    assert_int_equal(sp_feed_next(feed, &event, &fault), 1);
    assert_int_equal(event.function_id, 8);
    assert_null(event.function); /* nobody named it */
    assert_int_equal(event.layer.size, 6);
    assert_memory_equal(event.layer.data, "python", 6);
    assert_int_equal(sp_feed_next(feed, &event, &fault), 1);
    assert_int_equal(event.kind, SP_READ_RETURN);
    assert_true(event.raised);
    assert_int_equal(sp_feed_next(feed, &event, &fault), 0);
}

static void test_feed_joined_late_goes_on_from_there(void **state)
{
    (void)state;
    put(RUN END);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sp_feed_next(feed, &event, &fault), 1);
    assert_int_equal(event.kind, SP_KIND_END);
}

static void test_feed_fault_has_its_place_and_is_the_end(void **state)
{
    (void)state;
    put(START "{\"seq\":1,\"t\":1,]\n" END);
    assert_int_equal(sp_feed_next(feed, &event, &fault), 1);
    assert_int_equal(sp_feed_next(feed, &event, &fault), -1);
    assert_int_equal(fault.line, 2);
    assert_int_equal(fault.byte, strlen(START) + 15);
    assert_int_equal(sp_feed_next(feed, &event, &fault), -1);
}

static void test_feed_other_format_is_refused(void **state)
{
    (void)state;
    put("{\"seq\":0,\"t\":0,\"kind\":\"start\",\"layer\":\"supervisor\",\"pid\":1,"
        "\"tid\":1,\"format\":9}\n");
    assert_int_equal(sp_feed_next(feed, &event, &fault), -1);
}

static void test_feed_line_without_end_is_refused_in_time(void **state)
{
    (void)state;
    static char piece[1 << 20];
    memset(piece, 'x', sizeof piece);
    int got = 0;
    unsigned pieces = 0;
    while (got == 0 && pieces++ < 100) {
        assert_true(sp_feed_put(feed, piece, sizeof piece));
        got = sp_feed_next(feed, &event, &fault);
    }
    assert_int_equal(got, -1);
    assert_int_equal(pieces, SP_TRACE_LINE_MAX / sizeof piece + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_feed_gives_events_whatever_the_pieces),
        CASE(test_feed_run_is_given_as_calls_while_more_comes),
        CASE(test_feed_joined_late_goes_on_from_there),
        CASE(test_feed_fault_has_its_place_and_is_the_end),
        CASE(test_feed_other_format_is_refused),
        CASE(test_feed_line_without_end_is_refused_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
