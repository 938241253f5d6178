/* Where paths lead: as realpath() says, and nowhere where there is no path. */
#include "requires.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/real_path.h"

/* A folder of its own, which is then the current one. */
static int enter(void **state)
{
    static char folder[] = "/tmp/sandpit-real-path-XXXXXX";
    *state = folder;
    return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", (const char *)*state);
    return chdir("/") == 0 ? system(command) : -1;
}

static void make(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void same_as_realpath(const char *path)
{
    char expected[PATH_MAX];
    char real[PATH_MAX];
    bool there = realpath(path, expected) != NULL;
    int why = errno;
    assert_int_equal(sp_real_path(path, real), there);
    if (there)
        assert_string_equal(real, expected);
    else
        assert_int_equal(errno, why);
}

static void test_it_leads_where_realpath_says(void **state)
{
    static const char *const paths[] = {".",       "..",
                                        "/",       "folder",
                                        "folder/", "folder/../file",
                                        "file",    "link",
                                        "round",   "absent",
                                        "file/x",  "dangling",
                                        "chain",   "gone (deleted)",
                                        "",        "/proc/self/exe"};
    assert_int_equal(mkdir("folder", 0700), 0);
    make("file");
    make("gone (deleted)");
    assert_int_equal(symlink("file", "link"), 0);
    assert_int_equal(symlink("folder/../link", "chain"), 0);
    assert_int_equal(symlink("round", "round"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char whole[PATH_MAX];
        same_as_realpath(paths[i]);
        if (paths[i][0] == '/')
            continue;
        snprintf(whole, sizeof whole, "%s/%s", (const char *)*state, paths[i]);
        same_as_realpath(whole);
    }
    same_as_realpath("//");
}

static int plain(const char *folder, const char *name, int flags)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", folder, name);
    int fd = sp_open_plain(path, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* A path is plain if it says itself where it leads. */
static void test_plain_paths(void **state)
{
    const char *here = *state;
    assert_int_equal(plain("/", "", 0), 0);
    assert_int_equal(plain(here, "/file", 0), 0);
    assert_int_equal(plain(here, "/folder/", O_DIRECTORY), 0);
    assert_int_equal(plain(here, "/...", 0), ENOENT); /* a name like any other */
    assert_int_equal(plain(here, "/absent/and/more", 0), ENOENT);
    assert_int_equal(plain(here, "/file/", 0), ENOTDIR);
    assert_int_equal(plain(here, "/link", O_NOFOLLOW), 0); /* the link itself */
    static const char *const detours[] = {"/link",     "/dangling", "/folder/../absent",
                                          "/./file",   "/folder/.", "//file",
                                          "/folder//", "/.."};
    for (size_t i = 0; i < sizeof detours / sizeof *detours; i++)
        assert_int_equal(plain(here, detours[i], 0), ELOOP);
    assert_int_equal(plain("", "file", 0), ELOOP);
    assert_int_equal(plain("", "", 0), ELOOP);
    assert_int_equal(plain("/proc/self/exe", "", 0), ELOOP);
}

static void test_what_has_no_path_leads_nowhere(void **state)
{
    (void)state;
    char name[40];
    char real[PATH_MAX] = "as it was";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    assert_false(sp_real_path(name, real));
    assert_string_equal(real, "as it was");
    make("file");
    int file = open("file", O_RDONLY);
    unlink("file");
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    assert_false(sp_real_path(name, real));
    close(file);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_leads_where_realpath_says),
        cmocka_unit_test(test_plain_paths),
        cmocka_unit_test(test_what_has_no_path_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
