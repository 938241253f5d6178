/* A thread and this process on one processor, and afterwards where they were before. */
#include "requires.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/together.h"

static pid_t child;
static cpu_set_t all;

static int start(void **state)
{
    (void)state;
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    return sched_getaffinity(0, sizeof all, &all);
}

static int end(void **state)
{
    (void)state;
    kill(child, SIGKILL);
    return waitpid(child, NULL, 0) == child ? sched_setaffinity(0, sizeof all, &all)
                                            : -1;
}

static void is_at(pid_t who, const cpu_set_t *expected)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(who, sizeof set, &set), 0);
    assert_true(CPU_EQUAL(&set, expected));
}

static void test_both_are_here_until_the_end(void **state)
{
    (void)state;
    sp_test_requires("processors", CPU_COUNT(&all) > 1);
    struct sp_together together;
    cpu_set_t here;
    sp_together_begin(&together, child);
    assert_true(together.kept);
    assert_int_equal(sched_getaffinity(child, sizeof here, &here), 0);
    assert_int_equal(CPU_COUNT(&here), 1);
    is_at(0, &here);
    sp_together_end(&together, true);
    is_at(0, &all);
    is_at(child, &all);
}

/* Who chose where to be stays there. */
static void test_choices_stay(void **state)
{
    (void)state;
    sp_test_requires("processors", CPU_COUNT(&all) > 1);
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        struct sp_together together;
        cpu_set_t one;
        if (!CPU_ISSET(processor, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        assert_int_equal(sched_setaffinity(child, sizeof one, &one), 0);
        sp_together_begin(&together, child);
        assert_false(together.kept);
        sp_together_end(&together, true);
        is_at(child, &one);
        is_at(0, &all);
    }
}

static void test_what_was_chosen_meanwhile_stays(void **state)
{
    (void)state;
    sp_test_requires("processors", CPU_COUNT(&all) > 1);
    struct sp_together together;
    sp_together_begin(&together, child);
    assert_true(together.kept);
    cpu_set_t others = all;
    CPU_CLR(sched_getcpu(), &others);
    assert_int_equal(sched_setaffinity(child, sizeof others, &others), 0);
    sp_together_end(&together, true);
    is_at(child, &others);
    is_at(0, &all);
}

/* Its number may be another thread's by then. */
static void test_who_is_not_blocked_is_left_alone(void **state)
{
    (void)state;
    sp_test_requires("processors", CPU_COUNT(&all) > 1);
    struct sp_together together;
    sp_together_begin(&together, child);
    assert_true(together.kept);
    sp_together_end(&together, false);
    is_at(child, &together.here);
    is_at(0, &all);
}

static void test_a_thread_that_is_gone(void **state)
{
    (void)state;
    struct sp_together together;
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    sp_together_begin(&together, gone);
    assert_false(together.kept);
    sp_together_end(&together, true);
    is_at(0, &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_are_here_until_the_end, start, end),
        cmocka_unit_test_setup_teardown(test_choices_stay, start, end),
        cmocka_unit_test_setup_teardown(test_what_was_chosen_meanwhile_stays, start,
                                        end),
        cmocka_unit_test_setup_teardown(test_who_is_not_blocked_is_left_alone, start,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_thread_that_is_gone, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
