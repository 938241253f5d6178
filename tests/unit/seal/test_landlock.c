/* The Landlock domains: compiled for every ABI, and in force for every ABI that this
 * kernel can play.
 */
#include "requires.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "base/scope.h"
#include "confined.h"
#include "seal/landlock/ruleset.h"
#include "sys/host.h"
#include "sys/landlock.h"

static int kernel_abi(void)
{
    struct sp_host host;
    sp_host_probe(&host, SP_HOST_LAUNCH);
    return host.landlock_abi;
}

#define NODES  (SP_FS_MAKE_CHAR | SP_FS_MAKE_BLOCK)
#define TCP    (SP_NET_BIND_TCP | SP_NET_CONNECT_TCP)
#define SCOPES (SP_SCOPE_ABSTRACT_UNIX | SP_SCOPE_SIGNAL)
#define WRITES (SP_FS_WRITE_FILE | SP_FS_TRUNCATE | SP_FS_REFER)

static void test_domains_ask_for_what_each_abi_has(void **state)
{
    static const struct {
        int abi;
        bool network_denied;
        bool writes_guarded;
        uint64_t fs;
        uint64_t net;
        uint64_t scoped;
        unsigned paths;
        const char *why;
    } cases[] = {
        {-1, true, false, 0, 0, 0, 0, "no Landlock"},
        {0, true, true, 0, 0, 0, 0, "no Landlock"},
        {1, false, false, 0, 0, 0, 0, "a domain would keep the supervisor from moving"},
        {1, true, true, NODES | SP_FS_WRITE_FILE, 0, 0, 0, "the guest's: writes"},
        {2, false, false, NODES | SP_FS_REFER, 0, 0, 1, "moves granted everywhere"},
        {2, false, true, NODES | SP_FS_WRITE_FILE | SP_FS_REFER, 0, 0, 1, "and writes"},
        {3, true, false, NODES | SP_FS_REFER, 0, 0, 1, "the same"},
        {3, true, true, NODES | WRITES, 0, 0, 1, "truncation as well"},
        {4, false, false, NODES | SP_FS_REFER, 0, 0, 1, "the same"},
        {4, true, false, NODES | SP_FS_REFER, TCP, 0, 1,
         "the network makes the domain"},
        {4, true, true, NODES | WRITES, TCP, 0, 1, "the network, and writes"},
        {5, true, false, NODES | SP_FS_REFER, TCP, 0, 1, "the same"},
        {5, false, false, NODES | SP_FS_REFER, 0, 0, 1, "the same"},
        {6, false, false, NODES | SP_FS_REFER, 0, SP_SCOPE_SIGNAL, 1,
         "scopes make the domain"},
        {6, true, false, NODES | SP_FS_REFER, TCP, SCOPES, 1, "both"},
        {6, true, true, NODES | WRITES, TCP, SCOPES, 1, "and writes"},
        {8, true, false, NODES | SP_FS_REFER, TCP, SCOPES, 1,
         "nothing newer to ask for"},
        {99, true, false, NODES | SP_FS_REFER, TCP, SCOPES, 1,
         "nor from a kernel to come"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sp_landlock_features features = {cases[i].abi, cases[i].network_denied,
                                                cases[i].writes_guarded};
        struct sp_landlock landlock;
        print_message("# ABI %d: %s\n", cases[i].abi, cases[i].why);
        sp_landlock_compile(&features, &landlock);
        assert_int_equal(landlock.handled_fs, cases[i].fs);
        assert_int_equal(landlock.handled_net, cases[i].net);
        assert_int_equal(landlock.scoped, cases[i].scoped);
        assert_int_equal(landlock.paths_count, cases[i].paths);
        assert_int_equal(sp_landlock_scoped(&landlock), cases[i].scoped != 0);
    }
}

static void test_no_landlock_is_the_hosts_fault(void **state)
{
    struct sp_landlock_features features = {0, true, false};
    struct sp_landlock landlock;
    struct sp_error error = {0};
    int fd = -1;
    (void)state;
    sp_landlock_compile(&features, &landlock);
    assert_int_equal(sp_landlock_build(&landlock, &fd, &error), SP_E_HOST);
    assert_string_equal(error.what, "landlock");
    assert_int_equal(sp_landlock_build(&landlock, &fd, NULL), SP_E_HOST);
    assert_int_equal(fd, -1);
}

static void test_grants_are_cut_to_what_is_handled(void **state)
{
    struct sp_landlock_features features = {2, false, false};
    struct sp_landlock landlock;
    (void)state;
    sp_landlock_compile(&features, &landlock);
    landlock.handled_fs |= SP_FS_READ_FILE;
    assert_int_equal(
        sp_landlock_grant(&landlock, "/etc",
                          SP_FS_READ_FILE | SP_FS_READ_DIR | SP_FS_TRUNCATE, NULL),
        0);
    assert_int_equal(landlock.paths_count, 2);
    assert_int_equal(landlock.paths[1].access, SP_FS_READ_FILE);
    assert_int_equal(sp_landlock_grant(&landlock, "/usr", SP_FS_TRUNCATE, NULL), 0);
    assert_int_equal(landlock.paths_count, 2);
    while (landlock.paths_count < SP_LANDLOCK_PATHS_MAX)
        assert_int_equal(sp_landlock_grant(&landlock, "/x", SP_FS_READ_FILE, NULL), 0);
    assert_int_equal(sp_landlock_grant(&landlock, "/y", SP_FS_READ_FILE, NULL),
                     SP_E_POLICY);
}

/* ---- in force
 * ------------------------------------------------------------------------- */

/* What lies outside: a process, its listening TCP socket, its abstract Unix socket. */
struct outside {
    pid_t pid;
    uint16_t port; /* network order */
    struct sockaddr_un name;
    socklen_t name_size;
    char folder[64];
};

struct scene {
    const struct outside *outside;
    int abi;
    bool network_denied;
};

static const char secret[] = "readable from outside";

/* The supervisor's domain, or the guest's inside it, which may write everywhere here. */
static void enter(const struct scene *scene, bool guest)
{
    struct sp_landlock_features features = {scene->abi, scene->network_denied, guest};
    struct sp_landlock landlock;
    int fd = -1;
    sp_landlock_compile(&features, &landlock);
    if (sp_landlock_empty(&landlock))
        return; /* ABI 1: the supervisor has none */
    CHILD_CHECK(sp_landlock_grant(&landlock, "/", SP_FS_WRITE_FILE | SP_FS_TRUNCATE,
                                  NULL) == 0);
    CHILD_CHECK(sp_landlock_build(&landlock, &fd, NULL) == 0);
    CHILD_CHECK(sp_landlock_enter(fd) == 0);
    close(fd);
}

static int connect_abstract(const struct sockaddr_un *name, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = connect(fd, (const struct sockaddr *)name, size);
    int err = errno;
    close(fd);
    errno = err;
    return rc;
}

static int tcp(int (*act)(int, const struct sockaddr *, socklen_t), uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = act(fd, (const struct sockaddr *)&address, sizeof(address));
    int err = errno;
    close(fd);
    errno = err;
    return rc;
}

static int connect_tcp(int fd, const struct sockaddr *address, socklen_t size)
{
    return connect(fd, address, size);
}

static int bind_tcp(int fd, const struct sockaddr *address, socklen_t size)
{
    return bind(fd, address, size);
}

/* Whoever stands outside the domain cannot be looked into, under any ABI. */
static void check_unreadable(pid_t pid)
{
    char copy[sizeof(secret)];
    char path[64];
    struct iovec local = {copy, sizeof(copy)};
    struct iovec remote = {(void *)secret, sizeof(secret)};
    CHILD_FAILS(process_vm_readv(pid, &local, 1, &remote, 1, 0), EPERM);
    CHILD_FAILS(ptrace(PTRACE_ATTACH, pid, NULL, NULL), EPERM);
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    CHILD_FAILS(open(path, O_RDWR | O_CLOEXEC), EACCES);
    snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    CHILD_FAILS(open(path, O_RDONLY | O_CLOEXEC), EACCES);
}

static void check_scopes(const struct scene *scene, pid_t supervisor)
{
    const struct outside *outside = scene->outside;
    if (scene->abi < 6) {
        CHILD_CHECK(kill(outside->pid, 0) == 0);
        CHILD_CHECK(connect_abstract(&outside->name, outside->name_size) == 0);
        return;
    }
    CHILD_FAILS(kill(outside->pid, 0), EPERM);
    CHILD_FAILS(kill(supervisor, 0), EPERM);
    CHILD_FAILS((int)syscall(SYS_tgkill, outside->pid, outside->pid, 0), EPERM);
    if (scene->network_denied)
        CHILD_FAILS(connect_abstract(&outside->name, outside->name_size), EPERM);
    else
        CHILD_CHECK(connect_abstract(&outside->name, outside->name_size) == 0);
    /* What the guest itself binds it can reach, and itself it can signal. */
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    int size =
        snprintf(own.sun_path + 1, sizeof(own.sun_path) - 1, "sp-own-%d", getpid());
    socklen_t own_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHILD_CHECK(bind(server, (struct sockaddr *)&own, own_size) == 0);
    CHILD_CHECK(listen(server, 1) == 0);
    CHILD_CHECK(connect_abstract(&own, own_size) == 0);
    CHILD_CHECK(kill(getpid(), 0) == 0);
}

static void check_network(const struct scene *scene)
{
    bool denied = scene->network_denied && scene->abi >= 4;
    if (denied) {
        CHILD_FAILS(tcp(connect_tcp, scene->outside->port), EACCES);
        CHILD_FAILS(tcp(bind_tcp, 0), EACCES);
    } else {
        CHILD_CHECK(tcp(connect_tcp, scene->outside->port) == 0);
        CHILD_CHECK(tcp(bind_tcp, 0) == 0);
    }
}

/* Files are left alone: made, written, and moved between folders. */
static void check_files(const struct scene *scene)
{
    CHILD_CHECK(chdir(scene->outside->folder) == 0);
    int fd = open("a/file", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    CHILD_CHECK(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
    CHILD_CHECK(rename("a/file", "a/other") == 0);
    if (scene->abi == 1)
        CHILD_FAILS(rename("a/other", "b/file"), EXDEV);
    else
        CHILD_CHECK(rename("a/other", "b/file") == 0);
}

/* The guest: a second domain inside the supervisor's. */
static void run_guest(const struct scene *scene, pid_t supervisor, int ready, int done)
{
    char byte = 'r';
    enter(scene, true);
    CHILD_CHECK(sp_landlock_self_test(supervisor, scene->abi >= 6) == 0);
    CHILD_CHECK(write(ready, &byte, 1) == 1 && read(done, &byte, 1) == 1);
    check_unreadable(supervisor);
    check_unreadable(scene->outside->pid);
    check_scopes(scene, supervisor);
    check_network(scene);
    check_files(scene);
    _exit(0);
}

/* The supervisor reads its guest's memory, which is inside its own domain; where nobody without
 * capabilities may read another's (Yama 2), there is nothing to see. */
static void check_guest_readable(pid_t guest)
{
    char scope = '0';
    sp_auto_fd yama = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    CHILD_CHECK(kill(guest, 0) == 0);
    if (yama >= 0 && read(yama, &scope, 1) == 1 && scope >= '2')
        return;
    char copy[sizeof(secret)] = "";
    struct iovec local = {copy, sizeof(copy)};
    struct iovec remote = {(void *)secret, sizeof(secret)};
    CHILD_CHECK(process_vm_readv(guest, &local, 1, &remote, 1, 0) ==
                (ssize_t)sizeof(secret));
    CHILD_CHECK(strcmp(copy, secret) == 0);
}

static void run_supervisor(const void *argument)
{
    const struct scene *scene = argument;
    int ready[2];
    int done[2];
    char byte = 'd';
    confined_drop();
    enter(scene, false);
    CHILD_CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t supervisor = getpid();
    pid_t guest = fork();
    CHILD_CHECK(guest >= 0);
    if (guest == 0) {
        close(ready[0]);
        close(done[1]);
        run_guest(scene, supervisor, ready[1], done[0]);
    }
    close(ready[1]);
    close(done[0]);
    int status = -1;
    if (read(ready[0], &byte, 1) == 1) {
        check_guest_readable(guest);
        CHILD_CHECK(write(done[1], &byte, 1) == 1);
    }
    CHILD_CHECK(waitpid(guest, &status, 0) == guest && status == 0);
    _exit(0);
}

static void prepare(struct outside *outside)
{
    *outside = (struct outside){.pid = getpid(), .name = {.sun_family = AF_UNIX}};
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server, 64), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &size), 0);
    outside->port = address.sin_port;

    int length = snprintf(outside->name.sun_path + 1, 64, "sp-outside-%d", getpid());
    outside->name_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        bind(server, (struct sockaddr *)&outside->name, outside->name_size), 0);
    assert_int_equal(listen(server, 64), 0);

    strcpy(outside->folder, "/tmp/sp-landlock-XXXXXX");
    assert_non_null(mkdtemp(outside->folder));
    char path[80];
    snprintf(path, sizeof(path), "%s/a", outside->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/b", outside->folder);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void tidy(const struct outside *outside)
{
    static const char *const names[] = {"a/file", "a/other", "b/file", "a", "b", "."};
    char path[80];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", outside->folder, names[i]);
        if (unlink(path) != 0)
            rmdir(path);
    }
    rmdir(outside->folder);
}

static void test_domains_hold_under_every_abi(void **state)
{
    struct outside outside;
    (void)state;
    sp_test_requires("landlock", kernel_abi() >= 1);
    prepare(&outside);
    for (int abi = 1; abi <= kernel_abi(); abi++) {
        for (int denied = 0; denied < 2; denied++) {
            struct scene scene = {&outside, abi, denied != 0};
            print_message("# ABI %d, network %s\n", abi, denied ? "denied" : "open");
            assert_int_equal(confined_run(run_supervisor, &scene), 0);
        }
    }
    tidy(&outside);
}

/* ---- the self-test tells
 * ----------------------------------------------------------------- */

static void check_unconfined(const void *argument)
{
    const pid_t *supervisor = argument;
    CHILD_CHECK(sp_landlock_self_test(*supervisor, true) == -1);
    CHILD_CHECK(sp_landlock_self_test(*supervisor, false) == -1);
}

static void run_unconfined(const void *argument)
{
    (void)argument;
    pid_t supervisor = getpid();
    confined_drop();
    CHILD_CHECK(confined_run(check_unconfined, &supervisor) == 0);
}

static void test_the_self_test_fails_without_a_domain(void **state)
{
    (void)state;
    assert_int_equal(confined_run(run_unconfined, NULL), 0);
}

static void run_scopeless(const void *argument)
{
    struct sp_landlock_features features = {1, false, true};
    struct sp_landlock landlock;
    int fd = -1;
    confined_drop();
    sp_landlock_compile(&features, &landlock);
    CHILD_CHECK(sp_landlock_build(&landlock, &fd, NULL) == 0);
    CHILD_CHECK(sp_landlock_enter(fd) == 0);
    CHILD_CHECK(sp_landlock_self_test(*(const pid_t *)argument, false) == 0);
    CHILD_CHECK(sp_landlock_self_test(*(const pid_t *)argument, true) == -1);
}

static void test_the_self_test_tells_a_domain_without_the_scope(void **state)
{
    pid_t parent = getpid();
    (void)state;
    sp_test_requires("landlock", kernel_abi() >= 1);
    assert_int_equal(confined_run(run_scopeless, &parent), 0);
}

/* ---- rules on paths
 * -------------------------------------------------------------------- */

static void run_granted(const void *argument)
{
    struct sp_landlock_features features = {*(const int *)argument, false, false};
    const uint64_t all = SP_FS_READ_FILE | SP_FS_READ_DIR;
    struct sp_landlock landlock;
    int fd = -1;
    confined_drop();
    sp_landlock_compile(&features, &landlock);
    landlock.handled_fs |= all;
    CHILD_CHECK(sp_landlock_grant(&landlock, "/proc/self", all, NULL) == 0);
    CHILD_CHECK(sp_landlock_grant(&landlock, "/etc/passwd", all, NULL) == 0);
    CHILD_CHECK(sp_landlock_grant(&landlock, "/etc/passwd", SP_FS_READ_DIR, NULL) == 0);
    CHILD_CHECK(sp_landlock_grant(&landlock, "/no/such/place", all, NULL) == 0);
    CHILD_CHECK(sp_landlock_build(&landlock, &fd, NULL) == 0);
    CHILD_CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHILD_CHECK(sp_landlock_enter(fd) == 0);
    CHILD_CHECK(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
    CHILD_CHECK(open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
    CHILD_FAILS(open("/etc/group", O_RDONLY | O_CLOEXEC), EACCES);
    CHILD_FAILS(open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
}

static void test_grants_are_in_force_on_files_and_folders(void **state)
{
    (void)state;
    sp_test_requires("landlock", kernel_abi() >= 1);
    for (int abi = 1; abi <= kernel_abi(); abi++)
        assert_int_equal(confined_run(run_granted, &abi), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_domains_ask_for_what_each_abi_has),
        cmocka_unit_test(test_no_landlock_is_the_hosts_fault),
        cmocka_unit_test(test_grants_are_cut_to_what_is_handled),
        cmocka_unit_test(test_domains_hold_under_every_abi),
        cmocka_unit_test(test_the_self_test_fails_without_a_domain),
        cmocka_unit_test(test_the_self_test_tells_a_domain_without_the_scope),
        cmocka_unit_test(test_grants_are_in_force_on_files_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
