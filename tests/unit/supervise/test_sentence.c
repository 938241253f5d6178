/* The sentence of a denial, and where a lane keeps it for the thread that it is for. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "supervise/lane.h"
#include "supervise/record.h"
#include "supervise/sentence.h"

static const struct sp_ring_config config = {.size = sizeof config};

struct pair {
    struct sp_lanes lanes;
    struct sp_lane *lane;
    struct sp_ring *ring; /* as the guest has it */
};

static void pair_open(struct pair *p)
{
    int fd = -1;
    sp_lanes_init(&p->lanes, 0, SP_CALLS_OFF, &config, sizeof config);
    assert_int_equal(sp_lane_new(&p->lanes, 7, 100, NULL, &p->lane, &fd, NULL), 0);
    p->ring = mmap(NULL, sizeof *p->ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(p->ring, MAP_FAILED);
    close(fd);
}

static void pair_close(struct pair *p)
{
    munmap(p->ring, sizeof *p->ring);
    sp_lane_free(p->lane);
}

/* What is there for a thread, NULL: nothing. */
static const struct sp_ring_denied *told(const struct pair *p, uint32_t tid)
{
    const struct sp_ring_denied *found = NULL;
    for (unsigned i = 0; i < SP_DENIED_MAX; i++) {
        const struct sp_ring_denied *d = &p->ring->denied[i];
        if ((p->ring->denied_set & 1u << i) == 0 || d->tid != tid || d->serial == 0)
            continue;
        assert_int_equal(d->serial % 2, 0);
        assert_null(found);
        found = d;
    }
    return found;
}

static void test_sentence_holds_place_and_remedy(void **state)
{
    struct sp_explanation e = {.message = "write /x is denied", .hint = "ask first"};
    struct sp_place place = {.known = true, .line = 3, .file = "/job.py"};
    (void)state;
    assert_string_equal(sp_sentence_make(&e, &place),
                        "write /x is denied, /job.py:3; ask first");
    place.known = false;
    assert_string_equal(sp_sentence_make(&e, &place), "write /x is denied; ask first");
}

static void test_sentence_of_the_longest_parts_keeps_the_remedy(void **state)
{
    struct sp_explanation e;
    struct sp_place place = {.known = true, .line = 2147483647};
    (void)state;
    memset(&e, 'm', sizeof e);
    memset(e.hint, 'h', sizeof e.hint);
    memset(place.file, 'f', sizeof place.file);
    e.message[sizeof e.message - 1] = '\0';
    e.hint[sizeof e.hint - 1] = '\0';
    place.file[sizeof place.file - 1] = '\0';
    const char *sentence = sp_sentence_make(&e, &place);
    assert_string_equal(sentence + strlen(sentence) - strlen(e.hint), e.hint);
    assert_true(strlen(sentence) < SP_SENTENCE_BYTES);
}

static void test_lane_keeps_the_last_denial_of_each_thread(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p);
    assert_int_equal(p.ring->denied_set, 0);
    sp_lane_deny(p.lane, 101, 13, 5, "one");
    sp_lane_deny(p.lane, 102, 1, SP_SPOT_CHILD, "two");
    sp_lane_deny(p.lane, 101, 1, 6, "three");
    assert_string_equal(told(&p, 101)->text, "three");
    assert_int_equal(told(&p, 101)->err, 1);
    assert_int_equal(told(&p, 101)->spot, 6);
    assert_int_equal(told(&p, 101)->child, 0);
    assert_int_equal(told(&p, 102)->child, 1);
    sp_lane_undeny(p.lane, 103);
    sp_lane_undeny(p.lane, 101);
    assert_null(told(&p, 101));
    assert_string_equal(told(&p, 102)->text, "two");
    sp_lane_undeny(p.lane, 102);
    assert_int_equal(p.ring->denied_set, 0);
    pair_close(&p);
}

static void test_lane_full_of_denials_forgets_the_oldest(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p);
    for (unsigned i = 0; i < SP_DENIED_MAX; i++)
        sp_lane_deny(p.lane, (pid_t)(200 + i), 13, 1, "old");
    sp_lane_deny(p.lane, 300, 13, 1, "new");
    assert_null(told(&p, 200));
    assert_string_equal(told(&p, 201)->text, "old");
    assert_string_equal(told(&p, 300)->text, "new");
    for (unsigned i = 0; i <= SP_DENIED_MAX; i++)
        sp_lane_undeny(p.lane, (pid_t)(200 + i));
    sp_lane_undeny(p.lane, 300);
    assert_int_equal(p.ring->denied_set, 0);
    pair_close(&p);
}

/* What the guest writes there, and when, changes nothing for us. */
static void test_lane_believes_nothing_of_what_the_guest_wrote(void **state)
{
    struct pair p;
    char text[2 * SP_SENTENCE_BYTES];
    (void)state;
    pair_open(&p);
    sp_lane_deny(p.lane, 101, 13, 1, "one");
    memset(p.ring->denied, 0xff, sizeof p.ring->denied);
    p.ring->denied_set = UINT32_MAX;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sp_lane_deny(p.lane, 101, 13, 1, text);
    assert_int_equal(strlen(p.ring->denied[0].text), SP_SENTENCE_BYTES - 1);
    assert_int_equal(p.ring->denied[0].tid, 101);
    sp_lane_undeny(p.lane, 101);
    sp_lane_undeny(p.lane, -1);
    assert_int_equal(p.ring->denied_set, UINT32_MAX - 1);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentence_holds_place_and_remedy),
        cmocka_unit_test(test_sentence_of_the_longest_parts_keeps_the_remedy),
        cmocka_unit_test(test_lane_keeps_the_last_denial_of_each_thread),
        cmocka_unit_test(test_lane_full_of_denials_forgets_the_oldest),
        cmocka_unit_test(test_lane_believes_nothing_of_what_the_guest_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
