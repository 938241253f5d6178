/* Control groups of both versions, in a tree of ordinary folders that is made to look like one. */
#include "requires.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/cgroup.h"

static char root[64];
static const char
    *populated; /* below this folder, new groups have the controller's files */

static void put(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void get(const char *folder, const char *file, char to[64])
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, to, 63);
    to[n > 0 ? n : 0] = '\0';
    close(fd);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    static const char *const files[] = {
        "tasks",       "cgroup.procs",    "pids.max",
        "pids.events", "pids.peak",       "memory.limit_in_bytes",
        "memory.max",  "memory.events",   "memory.oom_control",
        "memory.peak", "memory.swap.max", "memory.oom.group",
    };
    int result = __real_mkdir(path, mode);
    size_t size = populated != NULL ? strlen(populated) : 0;
    bool direct = size > 0 && strncmp(path, populated, size) == 0 &&
                  strchr(path + size + 1, '/') == NULL;
    for (size_t i = 0; result == 0 && direct && i < sizeof files / sizeof *files; i++)
        put(path, files[i], "");
    return result;
}

static void folder(char *to, const char *name)
{
    snprintf(to, 256, "%s%s", root, name);
    assert_true(__real_mkdir(to, 0700) == 0 || errno == EEXIST);
}

static int setup(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/sandpit-cgroup-XXXXXX");
    populated = NULL;
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A tree as /proc/self/cgroup tells of it. */
static struct sp_cgroup_places places_with(const char *list)
{
    static char path[128];
    put(root, "list", list);
    snprintf(path, sizeof path, "%s/list", root);
    return (struct sp_cgroup_places){.list = path, .mount = root};
}

static void test_version_1(void **state)
{
    struct sp_cgroup_places places = places_with("9:memory:/a/b\n8:pids:/a\n0::/\n");
    struct sp_cgroup group;
    uint64_t value;
    char at[256];
    char text[64];
    (void)state;
    folder(at, "/pids");
    folder(at, "/pids/a");
    populated = at;
    put(at, "pids.max", "7\n");
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_PIDS, "sandpit-1", 20, &group, &value), 0);
    assert_false(group.unified);
    assert_int_equal(value, 7); /* a group around it allows no more */
    assert_true(group.enter >= 0 && group.events >= 0);
    get(group.folder, "pids.max", text);
    assert_string_equal(text, "20");
    assert_int_equal(sp_cgroup_hits(&group), 0);
    put(group.folder, "pids.events", "max 3\n");
    assert_int_equal(sp_cgroup_hits(&group), 3);
    put(group.folder, "pids.peak", "12\n");
    assert_int_equal(sp_cgroup_peak(&group), 12);
    sp_cgroup_close(&group);
}

static void test_version_2_both_controllers_in_one(void **state)
{
    struct sp_cgroup_places places = places_with("0::/user/app\n");
    struct sp_cgroup memory;
    struct sp_cgroup pids;
    uint64_t value;
    char at[256];
    char text[64];
    (void)state;
    folder(at, "/user");
    folder(at, "/user/app");
    put(at, "memory.max", "max\n");
    populated = at;
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_MEMORY, "sandpit-1", 4096, &memory, &value),
        0);
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_PIDS, "sandpit-1", 8, &pids, &value), 0);
    assert_true(memory.unified && pids.unified);
    assert_string_equal(memory.folder, pids.folder);
    assert_int_equal(value, 8);
    get(memory.folder, "memory.max", text);
    assert_string_equal(text, "4096");
    get(memory.folder, "memory.swap.max", text);
    assert_string_equal(text, "0");
    put(memory.folder, "memory.events", "low 0\nhigh 4\nmax 9\noom 1\noom_kill 2\n");
    assert_int_equal(sp_cgroup_hits(&memory), 2);
    sp_cgroup_close(&memory);
    sp_cgroup_close(&pids);
}

/* A group with processes in it hands no controller on; one beside it may have it. */
static void test_version_2_beside_ours(void **state)
{
    struct sp_cgroup_places places = places_with("0::/user/app.scope\n");
    struct sp_cgroup group;
    uint64_t value;
    char at[256];
    char own[300];
    (void)state;
    folder(at, "/user");
    folder(own, "/user/app.scope");
    populated = at;
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_PIDS, "sandpit-1", 8, &group, &value), 0);
    snprintf(own, sizeof own, "%s/sandpit-1", at);
    assert_string_equal(group.folder, own);
    sp_cgroup_close(&group);
}

static void test_none_leaves_nothing(void **state)
{
    struct sp_cgroup_places places = places_with("8:pids:/a\n0::/b\n");
    struct sp_cgroup group;
    uint64_t value;
    char at[256];
    char left[300];
    (void)state;
    folder(at, "/b");
    folder(at, "/pids");
    folder(at, "/pids/a"); /* no files appear in it: nothing can be limited */
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_PIDS, "sandpit-1", 8, &group, &value), -1);
    assert_int_equal(group.enter, -1);
    assert_string_equal(group.folder, "");
    snprintf(left, sizeof left, "%s/sandpit-1", at);
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(
        sp_cgroup_make(&places, SP_CGROUP_MEMORY, "sandpit-1", 8, &group, &value), -1);
    sp_cgroup_remove(&group);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_version_1),
        CASE(test_version_2_both_controllers_in_one),
        CASE(test_version_2_beside_ours),
        CASE(test_none_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
