/* What a tree of processes uses, as it is seen from outside. */
#include "requires.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/tree.h"
#include "sys/usage.h"

#define MS     1000000u
#define MIB    (UINT64_C(1) << 20)
#define BIG    (40 * MIB)
#define LEEWAY (50u * MS) /* clock ticks, and what a process needs to start and end */

static void burn(unsigned ms)
{
    struct timespec t;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while ((uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / MS < ms);
}

/* A child that does `work` and then waits to be killed. */
static pid_t start(void (*work)(void))
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        work();
        (void)!write(ready[1], "", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void look(struct sp_usage *usage)
{
    usage->threads_ns = 0;
    sp_usage_look(usage, sp_clock_ns());
}

static int setup(void **state)
{
    static struct sp_usage usage;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sp_usage_init(&usage);
    *state = &usage;
    return 0;
}

/* Children of children too. */
static int teardown(void **state)
{
    sp_usage_release(*state);
    return sp_tree_kill(sp_clock_ns() + 1000u * MS, NULL, NULL) ? 0 : -1;
}

static void nothing(void)
{
}

/* On an emulated processor the start and end of a process alone take more than that. */
static bool processes_are_cheap(void)
{
    struct rusage used;
    pid_t pid = start(nothing);
    kill(pid, SIGKILL);
    return wait4(pid, NULL, 0, &used) == pid &&
           (used.ru_utime.tv_sec + used.ru_stime.tv_sec) == 0 &&
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u < LEEWAY / 10;
}

static void burn_60(void)
{
    burn(60);
}

static void test_time_of_the_living_and_of_the_dead(void **state)
{
    struct sp_usage *usage = *state;
    sp_test_requires("cheap processes", processes_are_cheap());
    pid_t a = start(burn_60);
    look(usage);
    assert_in_range(usage->cpu_ns, 60u * MS, 60u * MS + LEEWAY);
    pid_t b = start(burn_60);
    finish(a); /* was seen */
    look(usage);
    assert_in_range(usage->cpu_ns, 120u * MS, 120u * MS + LEEWAY);
    finish(b);
    finish(start(burn_60)); /* was never seen */
    look(usage);
    assert_in_range(usage->cpu_ns, 160u * MS, 180u * MS + LEEWAY);
    assert_int_equal(usage->count, 0);
}

static void reap_two(void)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            burn(60);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

static void test_time_that_parents_gathered(void **state)
{
    struct sp_usage *usage = *state;
    sp_test_requires("cheap processes", processes_are_cheap());
    pid_t a = start(reap_two);
    look(usage);
    assert_in_range(usage->cpu_ns, 100u * MS, 120u * MS + LEEWAY);
    uint64_t before = usage->cpu_ns;
    finish(a);
    look(usage);
    assert_in_range(usage->cpu_ns, before, before + LEEWAY);
}

static void ignore_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            burn(60);
            poll(NULL, 0, 100);
            _exit(0);
        }
    poll(NULL, 0, 400);
}

/* The kernel adds the time of such children to nobody's: what was seen of it stays. */
static void test_time_that_nobody_gathers(void **state)
{
    struct sp_usage *usage = *state;
    sp_test_requires("cheap processes", processes_are_cheap());
    pid_t pid = fork();
    if (pid == 0) {
        ignore_children();
        pause();
    }
    for (int i = 0; i < 60; i++) {
        look(usage);
        poll(NULL, 0, 10);
    }
    assert_in_range(usage->cpu_ns, 170u * MS, 180u * MS + 2 * LEEWAY);
    finish(pid);
}

static void *wait_for_ever(void *nothing_)
{
    for (;;)
        pause();
    return nothing_;
}

static void start_threads(void)
{
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, wait_for_ever, NULL);
}

static void *fork_one(void *nothing_)
{
    if (fork() == 0)
        wait_for_ever(NULL);
    return wait_for_ever(nothing_);
}

static void fork_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fork_one, NULL);
    poll(NULL, 0, 50);
}

static void test_tasks_are_counted(void **state)
{
    struct sp_usage *usage = *state;
    pid_t a = start(nothing);
    look(usage);
    assert_int_equal(usage->tasks, 1);
    pid_t b = start(start_threads);
    look(usage);
    assert_int_equal(usage->tasks, 6);
    pid_t c = start(fork_in_thread);
    look(usage);
    assert_int_equal(usage->tasks, 9);
    finish(a);
    finish(b);
    finish(c); /* its child is ours now */
    look(usage);
    assert_int_equal(usage->tasks, 1);
}

static void have_big(void)
{
    void *p =
        mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, BIG);
}

static void share_big(void)
{
    have_big();
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            wait_for_ever(NULL);
}

static void test_memory_shared_pages_count_once(void **state)
{
    struct sp_usage *usage = *state;
    pid_t a = start(have_big);
    look(usage);
    assert_in_range(usage->resident, BIG, BIG + 10 * MIB);
    assert_in_range(sp_usage_memory(usage).own, BIG, BIG + 4 * MIB);
    finish(a);
    (void)start(share_big);
    look(usage);
    assert_in_range(usage->resident, 4 * BIG, 4 * BIG + 40 * MIB);
    assert_in_range(sp_usage_memory(usage).own, BIG, BIG + 8 * MIB);
}

static void hold_nameless(void)
{
    char block[65536] = "x";
    int memory = memfd_create("x", 0);
    char name[] = "/var/tmp/sandpit-test-XXXXXX";
    int disk = mkstemp(name);
    unlink(name);
    for (int i = 0; i < 32; i++) {
        (void)!write(memory, block, sizeof block);
        (void)!write(disk, block, sizeof block);
    }
    if (fork() == 0)
        wait_for_ever(NULL);
}

static void test_files_without_a_name(void **state)
{
    struct sp_usage *usage = *state;
    uint64_t memory;
    uint64_t disk;
    (void)start(hold_nameless);
    look(usage);
    sp_usage_nameless(usage, &memory, &disk);
    assert_in_range(memory, 2 * MIB, 2 * MIB + 65536);
    assert_in_range(disk, 2 * MIB, 3 * MIB);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_time_of_the_living_and_of_the_dead),
        CASE(test_time_that_parents_gathered),
        CASE(test_time_that_nobody_gathers),
        CASE(test_tasks_are_counted),
        CASE(test_memory_shared_pages_count_once),
        CASE(test_files_without_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
