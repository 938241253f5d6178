#include "supervise/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/tree.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Of the caller's streams it gets none; all else of ours is closed by the exec. */
static _Noreturn void become(const char *path, int socket_fd, pid_t supervisor)
{
    char *const argv[] = {SP_RESOLVER_NAME, NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != supervisor ||
        null < 0 || dup2(socket_fd, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(1);
    if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0 && errno != ENOSYS)
        _exit(1);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, argv, environ);
    _exit(1);
}

int sp_resolver_start(struct sp_resolver *resolver, const char *path,
                      struct sp_error *reterr)
{
    int pair[2];
    if (access(path, X_OK) != 0)
        return sp_fail_errno(reterr, SP_E_HOST,
                             "cannot start '%.300s', which looks names up", path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot start the resolver");
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(path, pair[1], self);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return sp_fail_errno(reterr, SP_E_HOST, "cannot start the resolver");
    }
    resolver->pid = pid;
    resolver->socket = pair[0];
    sp_tree_leave_out(pid);
    return 0;
}

bool sp_resolver_ask(struct sp_resolver *resolver, uint32_t serial,
                     const struct sp_name_question *question)
{
    struct sp_resolver_question q = {.serial = serial, .names = *question};
    return resolver->socket >= 0 &&
           send(resolver->socket, &q, sizeof q, MSG_DONTWAIT | MSG_NOSIGNAL) ==
               (ssize_t)sizeof q;
}

static bool sound(const struct sp_name_answer *names)
{
    if (names->count > SP_NAME_ADDRESSES_MAX ||
        memchr(names->canonical, '\0', sizeof names->canonical) == NULL ||
        (names->code == 0 && names->count == 0))
        return false;
    for (uint32_t i = 0; i < names->count; i++)
        if (names->addresses[i].family != AF_INET &&
            names->addresses[i].family != AF_INET6)
            return false;
    return true;
}

int sp_resolver_take(struct sp_resolver *resolver,
                     struct sp_resolver_answer *ret_answer)
{
    ssize_t n = recv(resolver->socket, ret_answer, sizeof *ret_answer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    if (n != (ssize_t)sizeof *ret_answer)
        return 0;
    if (!sound(&ret_answer->names))
        ret_answer->names = (struct sp_name_answer){.code = EAI_FAIL};
    return 1;
}

void sp_resolver_release(struct sp_resolver *resolver)
{
    sp_close_fd(&resolver->socket);
    resolver->pid = 0;
}
