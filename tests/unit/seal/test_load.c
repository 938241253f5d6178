/* Loaded filters, on this kernel: who is notified of what, and what holds when nobody
 * is there to answer.
 */
#include "requires.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "confined.h"
#include "ring/ring.h"
#include "seal/seccomp/filter.h"
#include "seal/seccomp/load.h"
#include "sys/host.h"
#include "sys/listener.h"

static const struct sp_filter_features no_network = {
    .network_denied = true,
    .signals_scoped = true,
    .devices_scoped = true,
    .record = true,
    .listener = true,
};

static const struct sp_filter_features no_listener = {
    .network_denied = true,
    .signals_scoped = true,
    .devices_scoped = true,
};

static void require_listener(void)
{
    struct sp_host host;
    sp_host_probe(&host, SP_HOST_LAUNCH);
    sp_test_requires("listener", host.listener);
}

/* ---- a guest and its supervisor
 * ------------------------------------------------------------ */

/* Shared with the guest, which also shares our table of descriptors. */
struct stage {
    struct sp_filter filter;
    int listener;
    int loaded;
    int go; /* pipe ends of the guest */
    int ready;
};

/* The guest loads the filter, says so, and does `act` when told to. */
static pid_t start(struct stage *stage, void (*act)(void))
{
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child != 0)
        return child;
    confined_drop();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    stage->listener = sp_filter_load(&stage->filter);
    char byte = 'r';
    if (write(stage->ready, &byte, 1) != 1 || read(stage->go, &byte, 1) != 1)
        _exit(98);
    act();
    _exit(7);
}

static struct stage *stage_new(const struct sp_filter_features *features, int ends[4])
{
    struct stage *stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(stage != MAP_FAILED);
    assert_int_equal(sp_filter_compile(features, &stage->filter, NULL), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ends + 2, O_CLOEXEC), 0);
    stage->ready = ends[1];
    stage->go = ends[2];
    return stage;
}

/* What the supervisor saw of one run, and how it answers each call but exit_group. */
struct audience {
    int answer; /* errno; 0: go on */
    int numbers[16];
    uint64_t first_arguments[16];
    unsigned count;
    int status;
};

static void attend(int listener, struct audience *audience)
{
    for (;;) {
        struct seccomp_notif notification;
        struct pollfd ready = {listener, POLLIN, 0};
        if (poll(&ready, 1, 5000) != 1 || (ready.revents & POLLIN) == 0)
            return;
        if (sp_listener_receive(listener, &notification) != 0)
            continue;
        assert_in_range(audience->count, 0, 15);
        audience->numbers[audience->count] = notification.data.nr;
        audience->first_arguments[audience->count++] = notification.data.args[0];
        if (audience->answer == 0 || notification.data.nr == SYS_exit_group)
            (void)sp_listener_continue(listener, notification.id);
        else
            (void)sp_listener_refuse(listener, notification.id, audience->answer);
    }
}

/* `alone`: the listener is closed before the guest does anything. */
static struct audience perform(void (*act)(void), int answer, bool alone)
{
    struct audience audience = {.answer = answer};
    int ends[4];
    char byte = 0;
    struct stage *stage = stage_new(&no_network, ends);
    pid_t guest = start(stage, act);
    assert_true(guest > 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(stage->listener >= 0);
    assert_int_equal(fcntl(stage->listener, F_GETFD), FD_CLOEXEC);
    if (alone)
        close(stage->listener);
    assert_int_equal(write(ends[3], &byte, 1), 1);
    if (!alone)
        attend(stage->listener, &audience);
    assert_int_equal(waitpid(guest, &audience.status, 0), guest);
    if (!alone)
        close(stage->listener);
    for (int i = 0; i < 4; i++)
        close(ends[i]);
    munmap(stage, sizeof(*stage));
    return audience;
}

/* ---- what guests do
 * ---------------------------------------------------------------------- */

static void act_denied(void)
{
    CHILD_FAILS(mkdirat(AT_FDCWD, "/tmp/sandpit-never", 0700), EROFS);
    CHILD_FAILS((int)syscall(SP_CALL_NR, SP_CALL_HELLO), EROFS);
    CHILD_FAILS((int)syscall(9999, 5), EROFS);
    CHILD_FAILS((int)syscall(SYS_prlimit64, getppid(), 0, NULL, NULL), EROFS);
}

static void test_notified_calls_arrive_and_get_their_answer(void **state)
{
    (void)state;
    require_listener();
    struct audience seen = perform(act_denied, EROFS, false);
    assert_true(WIFEXITED(seen.status));
    assert_int_equal(WEXITSTATUS(seen.status), 7);
    assert_int_equal(seen.count, 5);
    assert_int_equal(seen.numbers[0], SYS_mkdirat);
    assert_int_equal(seen.numbers[1], SP_CALL_NR);
    assert_int_equal(seen.first_arguments[1], SP_CALL_HELLO);
    assert_int_equal(seen.numbers[2], 9999);
    assert_int_equal(seen.numbers[3], SYS_prlimit64);
    assert_int_equal(seen.numbers[4], SYS_exit_group);
    assert_int_equal(seen.first_arguments[4], 7);
}

static void *rest(void *argument)
{
    return argument;
}

static void act_ordinary(void)
{
    int ends[2];
    char byte = 'x';
    struct stat status;
    CHILD_CHECK(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
    CHILD_CHECK(stat("/", &status) == 0);
    CHILD_CHECK(pipe(ends) == 0 && write(ends[1], &byte, 1) == 1);
    CHILD_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    CHILD_CHECK(send(ends[0], &byte, 1, MSG_NOSIGNAL) == 1);
    CHILD_CHECK(recv(ends[1], &byte, 1, 0) == 1);
    CHILD_CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                MAP_FAILED);
    CHILD_CHECK(rest(NULL) == NULL);
    CHILD_FAILS((int)syscall(437, AT_FDCWD, "/", NULL, 0), ENOSYS); /* openat2 */
    CHILD_FAILS((int)syscall(425, 1, NULL), ENOSYS);                /* io_uring_setup */
    CHILD_FAILS((int)syscall(435, NULL, 0), ENOSYS);                /* clone3 */
    CHILD_FAILS((int)syscall(-1), ENOSYS);
    /* What the child does between the filter and its exec needs nobody. */
    CHILD_CHECK(dup2(ends[0], 200) == 200);
    CHILD_CHECK(syscall(436, 3, ~0u, 2) == 0); /* close_range, CLOSE_RANGE_UNSHARE */
}

static void test_ordinary_calls_are_not_seen(void **state)
{
    (void)state;
    require_listener();
    struct audience seen = perform(act_ordinary, EROFS, false);
    assert_true(WIFEXITED(seen.status));
    assert_int_equal(WEXITSTATUS(seen.status), 7);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.numbers[0], SYS_exit_group);
}

static int load_allowing(unsigned flags)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void act_own_listener(void)
{
    CHILD_FAILS(load_allowing(8), EBUSY);
    CHILD_FAILS(load_allowing(8 | 32), EBUSY);
    CHILD_CHECK(load_allowing(0) == 0);
}

static void test_a_guest_gets_no_listener_but_may_filter_itself(void **state)
{
    (void)state;
    require_listener();
    struct audience seen = perform(act_own_listener, EROFS, false);
    assert_true(WIFEXITED(seen.status));
    assert_int_equal(WEXITSTATUS(seen.status), 7);
    assert_int_equal(seen.count, 1);
}

/* The newest listener wins: a guest with one of its own, once ours is gone, would
 * answer itself. And without ours every notified call fails. */
static void act_alone(void)
{
    if (load_allowing(8) >= 0 || errno != EBUSY)
        kill(getpid(), SIGABRT);
    if (mkdirat(AT_FDCWD, "/tmp/sandpit-never", 0700) == 0 || errno != ENOSYS)
        kill(getpid(), SIGABRT);
    /* exit_group is notified too: it cannot end by itself. */
    syscall(SYS_exit, 7);
}

static void test_a_dead_supervisor_leaves_nothing_open(void **state)
{
    (void)state;
    require_listener();
    struct audience seen = perform(act_alone, 0, true);
    assert_true(WIFEXITED(seen.status));
    assert_int_equal(WEXITSTATUS(seen.status), 7);
}

/* ---- foreign calls
 * ----------------------------------------------------------------------- */

#if defined(__x86_64__)
static void act_foreign(void)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    (void)result;
}

static void act_x32(void)
{
    syscall(0x40000000 | SYS_getpid);
}

static void test_foreign_calls_end_the_process(void **state)
{
    (void)state;
    require_listener();
    struct audience seen = perform(act_foreign, 0, false);
    assert_true(WIFSIGNALED(seen.status));
    assert_int_equal(WTERMSIG(seen.status), SIGSYS);
    seen = perform(act_x32, 0, false);
    assert_true(WIFSIGNALED(seen.status));
    assert_int_equal(WTERMSIG(seen.status), SIGSYS);
}
#endif

/* ---- without a listener
 * -------------------------------------------------------------------- */

static void run_without_listener(const void *argument)
{
    const struct sp_filter *filter = argument;
    confined_drop();
    CHILD_CHECK(sp_filter_load_without_listener(filter) == 0);
    CHILD_CHECK(open("/dev/null", O_RDWR | O_CLOEXEC) >= 0);
    CHILD_CHECK(fork() >= 0);
    CHILD_FAILS(socket(AF_INET, SOCK_STREAM, 0), EACCES);
    CHILD_FAILS(socket(AF_UNIX, SOCK_STREAM, 0), EACCES);
    CHILD_FAILS((int)syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM);
    CHILD_FAILS((int)syscall(SP_CALL_NR, SP_CALL_HELLO), ENOSYS);
    CHILD_FAILS((int)syscall(9999), ENOSYS);
    CHILD_FAILS(load_allowing(8), EBUSY);
    CHILD_CHECK(kill(getpid(), 0) == 0);
}

static void test_without_a_listener_denials_are_errnos(void **state)
{
    struct sp_filter filter;
    (void)state;
    assert_int_equal(sp_filter_compile(&no_listener, &filter, NULL), 0);
    assert_int_equal(confined_run(run_without_listener, &filter), 0);
}

/* Every filter that can be compiled passes the kernel's checker. */
static void run_all_filters(const void *argument)
{
    (void)argument;
    confined_drop();
    for (unsigned number = 0; number < 512; number++) {
        struct sp_filter_features features = {
            .network_denied = number & 1,
            .trace_only = number & 2,
            .signals_scoped = number & 4,
            .devices_scoped = number & 8,
            .reads_notified = number & 16,
            .record = number & 32,
            .tasks_notified = number & 64,
            .network_judged = (number & 65) == 65,
            .forks_denied = number & 128,
            .code_notified = number & 256,
            .listener = true,
        };
        struct sp_filter filter;
        CHILD_CHECK(sp_filter_compile(&features, &filter, NULL) == 0);
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) /* exit: not exit_group, which would wait for an answer */
            syscall(SYS_exit, sp_filter_load(&filter) < 0);
        int status = -1;
        CHILD_CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void test_the_kernel_takes_every_filter(void **state)
{
    (void)state;
    require_listener();
    assert_int_equal(confined_run(run_all_filters, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notified_calls_arrive_and_get_their_answer),
        cmocka_unit_test(test_ordinary_calls_are_not_seen),
        cmocka_unit_test(test_a_guest_gets_no_listener_but_may_filter_itself),
        cmocka_unit_test(test_a_dead_supervisor_leaves_nothing_open),
#if defined(__x86_64__)
        cmocka_unit_test(test_foreign_calls_end_the_process),
#endif
        cmocka_unit_test(test_without_a_listener_denials_are_errnos),
        cmocka_unit_test(test_the_kernel_takes_every_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
