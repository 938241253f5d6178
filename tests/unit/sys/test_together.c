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
    sp_together_end(&together);
    is_at(0, &all);
    is_at(child, &all);
}

/* What somebody chose is given back as it was, and a thread that may not be here stays away. */
static void test_narrow_places(void **state)
{
    (void)state;
    sp_test_requires("processors", CPU_COUNT(&all) > 1);
    unsigned kept = 0;
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        struct sp_together together;
        cpu_set_t one;
        if (!CPU_ISSET(processor, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        assert_int_equal(sched_setaffinity(child, sizeof one, &one), 0);
        sp_together_begin(&together, child);
        kept += together.kept;
        sp_together_end(&together);
        is_at(child, &one);
        is_at(0, &all);
    }
    assert_true(kept < (unsigned)CPU_COUNT(&all));
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
    sp_together_end(&together);
    is_at(0, &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_are_here_until_the_end, start, end),
        cmocka_unit_test_setup_teardown(test_narrow_places, start, end),
        cmocka_unit_test_setup_teardown(test_a_thread_that_is_gone, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
