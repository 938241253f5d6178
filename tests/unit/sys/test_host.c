/* What the host probe finds, and what SANDPIT_FORCE takes away. */
#include "requires.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "sys/host.h"
#include "sys/landlock.h"

static struct sp_host able(void)
{
    return (struct sp_host){
        .landlock_abi = 7,
        .listener = true,
        .wait_killable = true,
        .sync_wake = true,
        .addfd_send = true,
        .pidfd_getfd = true,
        .process_vm_readv = true,
        .memory_file = true,
        .user_namespaces = true,
        .cgroup_writable = true,
        .tmpfile = true,
    };
}

static void test_force_lowers_landlock_and_never_raises_it(void **state)
{
    static const struct {
        const char *text;
        int abi;
        int error;
        const char *why;
    } cases[] = {
        {"", 7, 0, "nothing asked"},
        {"landlock=2", 2, 0, "lowered"},
        {"landlock=0", 0, ENOSYS, "as if not built in"},
        {"landlock=8", 7, 0, "not raised"},
        {"landlock=3,landlock=5", 3, 0, "not raised again"},
        {"landlock=5,landlock=3", 3, 0, "lowered twice"},
        {"listener=off,landlock=4,tmpfile=off", 4, 0, "among others"},
        {"landlock=9", 7, 0, "no such ABI"},
        {"landlock=12", 7, 0, "no such ABI"},
        {"landlock=", 7, 0, "no value"},
        {"landlock", 7, 0, "no value"},
        {"landlock=off", 7, 0, "a number is meant"},
        {",,landlock=1,", 1, 0, "empty items"},
        {"landlockx=1", 7, 0, "another name"},
        {"=1", 7, 0, "no name"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sp_host host = able();
        print_message("# '%s': %s\n", cases[i].text, cases[i].why);
        sp_host_lower(&host, cases[i].text);
        assert_int_equal(host.landlock_abi, cases[i].abi);
        assert_int_equal(host.landlock_error, cases[i].error);
    }
}

static void test_force_switches_abilities_off_one_by_one(void **state)
{
    struct sp_host host = able();
    (void)state;
    sp_host_lower(&host, NULL);
    sp_host_lower(&host,
                  "pidfd_getfd=off,cgroup=off,listener=on,sync_wake=of,nothing=off");
    assert_false(host.pidfd_getfd);
    assert_false(host.cgroup_writable);
    assert_true(host.listener);
    assert_true(host.sync_wake);
    sp_host_lower(&host, "listener=off,wait_killable=off,sync_wake=off,addfd_send=off,"
                         "process_vm_readv=off,memory_file=off,user_namespaces=off,"
                         "tmpfile=off");
    assert_false(host.listener || host.wait_killable || host.sync_wake ||
                 host.addfd_send || host.process_vm_readv || host.memory_file ||
                 host.user_namespaces || host.tmpfile);
    sp_host_lower(&host, "listener=on");
    assert_false(host.listener);
}

static void test_the_environment_is_heeded(void **state)
{
    struct sp_host host;
    (void)state;
    setenv("SANDPIT_FORCE", "landlock=0,listener=off,pidfd_getfd=off", 1);
    sp_host_probe(&host, SP_HOST_LAUNCH);
    unsetenv("SANDPIT_FORCE");
    assert_false(host.pidfd_getfd);
    assert_true(host.addfd_send);
    assert_int_equal(host.landlock_abi, 0);
    assert_false(host.listener);
}

static void test_the_cheap_probe_names_the_machine(void **state)
{
    struct sp_host host;
    (void)state;
    sp_host_probe(&host, SP_HOST_LAUNCH);
    assert_in_range(host.landlock_abi, 0, SP_LANDLOCK_ABI_MAX);
    assert_true(host.landlock_abi > 0 || host.landlock_error > 0);
    assert_true(strlen(host.kernel) > 0);
    assert_true(strlen(host.arch) > 0);
    assert_false(host.user_namespaces || host.cgroup_writable);
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* What stands behind the listener was tried, and nothing is left of the trial. */
static void test_the_full_probe_agrees_with_the_cheap_one(void **state)
{
    struct sp_host cheap;
    struct sp_host full;
    (void)state;
    sp_host_probe(&cheap, SP_HOST_LAUNCH);
    unsigned before = descriptors();
    sp_host_probe(&full, SP_HOST_FULL);
    assert_int_equal(descriptors(), before);
    assert_int_equal(full.landlock_abi, cheap.landlock_abi);
    sp_test_requires("listener", full.listener);
    assert_true(cheap.listener);
    FILE *yama = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    bool hidden = yama != NULL && getc(yama) >= '2';
    assert_int_equal(full.process_vm_readv || full.memory_file, !hidden);
    if (yama != NULL)
        fclose(yama);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_force_lowers_landlock_and_never_raises_it),
        cmocka_unit_test(test_force_switches_abilities_off_one_by_one),
        cmocka_unit_test(test_the_environment_is_heeded),
        cmocka_unit_test(test_the_cheap_probe_names_the_machine),
        cmocka_unit_test(test_the_full_probe_agrees_with_the_cheap_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
