/* Ways into procfs, as another process takes them: `self` is that process, not this one. */
#include "requires.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/guest.h"

static pid_t guest;
static char folder[] = "/tmp/sandpit-guest-proc-XXXXXX";

/* The guest stands in a folder with links. */
static int start(void **state)
{
    (void)state;
    char target[40];
    int ready[2];
    char one;
    snprintf(target, sizeof target, "/proc/%d", (int)getpid());
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || pipe(ready) != 0 ||
        symlink("/proc/self", "own") != 0 || symlink("/proc", "proc") != 0 ||
        symlink(target, "other") != 0 || symlink("round", "round") != 0 ||
        symlink("own/fd/7", "end") != 0)
        return -1;
    guest = fork();
    if (guest == 0) {
        close(ready[0]);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    ssize_t n = read(ready[0], &one, 1); /* until it has closed its end */
    close(ready[0]);
    return n == 0 ? chdir("/") : -1;
}

static int stop(void **state)
{
    (void)state;
    char command[100];
    kill(guest, SIGKILL);
    waitpid(guest, NULL, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void needs_procfs(void)
{
    sp_test_requires("procfs", access("/proc/self/fd", F_OK) == 0);
}

static void test_self_is_the_guest(void **state)
{
    (void)state;
    needs_procfs();
    static const struct {
        const char *path;
        const char *to; /* NULL: not into procfs */
        bool follow;
    } ways[] = {
        {"/proc/self/stat", "/proc/self/stat", false},
        {"/proc//self/./fd/7", "/proc/self/fd/7", false},
        {"/proc/../proc/thread-self/comm", "/proc/thread-self/comm", true},
        {"own/fd/7", "/proc/self/fd/7", true},
        {"own/fd/0/x/y", "/proc/self/fd/0/x/y", false},
        {"proc/self/task/1/stat", "/proc/self/task/1/stat", false},
        {"own", "/proc/self", true},
        {"own", NULL, false},
        {"own/", "/proc/self/", false},
        {"end", "/proc/self/fd/7", true},
        {"end", NULL, false},
        {"/proc/mounts", "/proc/self/mounts", true},
        {"/proc/mounts", "/proc/mounts", false},
        {"/proc/1/../self/nothing", "/proc/self/nothing", false},
        {"/proc/self/../1/stat", "/proc/1/stat", false},
        {"/proc/self/root/proc/self/fd/7", "/proc/self/fd/7", true},
        {"own/root/proc/thread-self/x", "/proc/thread-self/x", true},
        {"/proc/self/cwd", "/proc/self/cwd", true},
        {"/proc/self/root/none", "/none", true},
        {"round", NULL, true},
        {"nothing/at/all", NULL, true},
        {"/proc/..", "/", true},
        {"", NULL, true},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char to[PATH_MAX] = "as it was";
        bool found =
            sp_guest_proc_walk(guest, AT_FDCWD, ways[i].path, ways[i].follow, to);
        assert_string_equal(to, ways[i].to != NULL ? ways[i].to : "as it was");
        assert_int_equal(found, ways[i].to != NULL);
    }
}

static void test_another_process_keeps_its_number(void **state)
{
    (void)state;
    needs_procfs();
    char to[PATH_MAX];
    char expected[40];
    snprintf(expected, sizeof expected, "/proc/%d/stat", (int)getpid());
    assert_true(sp_guest_proc_walk(guest, AT_FDCWD, "other/stat", true, to));
    assert_string_equal(to, expected);
}

static void test_what_gets_too_long_leads_nowhere(void **state)
{
    (void)state;
    needs_procfs();
    char path[PATH_MAX];
    char to[PATH_MAX] = "as it was";
    snprintf(path, sizeof path, "own/%0*d", PATH_MAX - 8, 0);
    assert_false(sp_guest_proc_walk(guest, AT_FDCWD, path, true, to));
    assert_string_equal(to, "as it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_is_the_guest),
        cmocka_unit_test(test_another_process_keeps_its_number),
        cmocka_unit_test(test_what_gets_too_long_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
