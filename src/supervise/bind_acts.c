/* Binding and listening: judged on the copied address, done on the socket itself. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "supervise/fs_judge.h"
#include "supervise/network.h"
#include "sys/guest.h"
#include "sys/watchdog.h"

static int take(struct sp_act_call *call)
{
    return sp_sockets_take_any(&call->s->sockets, call->process->pidfd,
                               (pid_t)call->n->pid, sp_act_int(call, 0));
}

/* To a path as the guest would do it, so that the socket's own name is the one it asked for. */
static int perform(struct sp_act_call *call, int fd, const struct sp_address *a)
{
    bool path = a->family == AF_UNIX &&
                a->size > offsetof(struct sockaddr_un, sun_path) &&
                a->raw.un.sun_path[0] != '\0';
    if (path)
        return sp_guest_bind_path((pid_t)call->n->pid, call->s->is->launch->ruleset, fd,
                                  &a->raw.un, a->size);
    return bind(fd, &a->raw.sa, a->size) == 0 ? 0 : -errno;
}

/* Whether binding to any IPv6 address takes the IPv4 ones as well. */
static bool takes_both(int fd, const struct sp_address *a)
{
    int only = 0;
    socklen_t size = sizeof only;
    return a->family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->raw.in6.sin6_addr) &&
           (fd < 0 || getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) != 0 ||
            only == 0);
}

/* Judges what the socket `fd` (or none) is to take; true: it may not, and that is told. */
static bool refused(struct sp_act_call *call, const char *operation, enum sp_act act,
                    int fd, const struct sp_address *a, struct sp_answer *ret_answer)
{
    static struct sp_address both;
    struct sp_verdict verdict = sp_network_judge(call, a);
    if (verdict.action == SP_ALLOW && takes_both(fd, a)) {
        both.raw.in = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_port = a->raw.in6.sin6_port};
        sp_address_take(&both, (int)sizeof both.raw.in);
        verdict = sp_network_judge(call, &both);
        a = &both;
    }
    if (verdict.action == SP_ALLOW)
        return false;
    *ret_answer = sp_network_deny(call, act, operation, a->text, a, &verdict, EACCES);
    return true;
}

/* A port that the kernel picks for a TCP socket is nobody's until it listens, which is judged: many
 * libraries find out by such a bind whether there is IPv6. */
static bool waits_to_listen(int fd, const struct sp_address *a)
{
    int protocol = 0;
    socklen_t size = sizeof protocol;
    return a->port == 0 && fd >= 0 &&
           getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
           protocol == IPPROTO_TCP;
}

static struct sp_answer bind_taken(struct sp_act_call *call, int fd,
                                   const struct sp_address *a)
{
    struct sp_answer answer;
    if (sp_address_is_inet(a)) {
        if (!waits_to_listen(fd, a) &&
            refused(call, "bind", SP_ACT_CONNECT, fd, a, &answer))
            return answer;
    } else if (a->family != AF_UNIX) {
        return sp_network_deny(call, SP_ACT_CONNECT, "bind", a->text, a, NULL, EACCES);
    }
    if (fd == -EACCES) /* one that nobody could act on */
        return sp_network_deny(call, SP_ACT_CONNECT, "bind", a->text, a, NULL, EACCES);
    int result = fd >= 0 ? perform(call, fd, a) : fd;
    struct sp_answer done = result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
    sp_network_record_done(call, SP_KIND_BIND, SP_ACT_CONNECT, "bind", a, &done);
    return done;
}

static struct sp_answer bind_judged(struct sp_act_call *call, struct sp_address *a)
{
    /* Of IPv4, the kernel takes an address without a family for any address. */
    if (a->family == AF_UNSPEC && a->size >= sizeof a->raw.in) {
        a->raw.sa.sa_family = AF_INET;
        sp_address_take(a, (int)a->size);
    }
    struct sp_answer answer = SP_REFUSE(EAGAIN);
    if (sp_watchdog_begin()) {
        int fd = take(call);
        answer = bind_taken(call, fd, a);
        sp_close_fd(&fd);
    }
    sp_watchdog_end();
    return answer;
}

/* The node that a Unix socket gets is a new file. In the folder that was judged, under the name
 * that was: the guest's own call could be led elsewhere. */
static struct sp_answer make_node(struct sp_act_call *call, const struct sp_address *a,
                                  const struct sp_path *path)
{
    char name[NAME_MAX + 2];
    char text[PATH_MAX];
    struct sp_answer answer;
    struct sockaddr_un in_folder = {.sun_family = AF_UNIX};
    sp_auto_fd folder = sp_path_open_folder(call, path, name);
    sp_auto_fd fd = folder >= 0 ? take(call) : -1;
    if (fd == -EACCES) /* one that nobody could act on */
        return sp_network_deny(call, SP_ACT_CONNECT, "bind", a->text, a, NULL, EACCES);
    if (folder < 0 || fd < 0)
        return SP_REFUSE(folder < 0 ? -folder : -fd);
    if (!sp_fs_path_in(call->s, folder, name, text))
        return SP_REFUSE(ENAMETOOLONG);
    if (sp_fs_refused(call, SP_LIST_WRITE, "bind", text, &answer))
        return answer;
    size_t size = strlen(name);
    if (size >= sizeof in_folder.sun_path)
        return SP_REFUSE(ENAMETOOLONG);
    memcpy(in_folder.sun_path, name, size);
    int result =
        sp_guest_bind_in((pid_t)call->n->pid, folder, -1, fd, &in_folder,
                         (unsigned)(offsetof(struct sockaddr_un, sun_path) + size + 1));
    struct sp_answer done = result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
    sp_network_record_done(call, SP_KIND_BIND, SP_ACT_CONNECT, "bind", a, &done);
    return done;
}

/* Whether the policy on files has decided about binding a socket to a path. */
static bool node_decided(struct sp_act_call *call, const struct sp_address *a,
                         struct sp_answer *ret_answer)
{
    static struct sp_path path;
    char text[sizeof a->raw.un.sun_path + 1];
    size_t head = offsetof(struct sockaddr_un, sun_path);
    if (!call->s->is->writes_judged || a->family != AF_UNIX || a->size <= head ||
        a->raw.un.sun_path[0] == '\0')
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(a->size - head), a->raw.un.sun_path);
    int result = sp_path_take(call, AT_FDCWD, text, SP_LAST_NAMED, &path);
    if (result != 0 || (path.error != ENOENT && path.error != 0) || path.stray) {
        *ret_answer = SP_REFUSE(result != 0 ? -result : path.error);
        return true;
    }
    if (path.error == 0 || path.slash) {
        *ret_answer = SP_REFUSE(path.error == 0 ? EADDRINUSE : ENOENT);
        return true;
    }
    call->asked = path.asked;
    if (sp_fs_refused(call, SP_LIST_WRITE, "bind", path.text, ret_answer))
        return true;
    sp_files_note(&call->s->files, path.text);
    if (sp_fs_kernel_names(call->s, SP_LIST_WRITE, path.text) ||
        call->s->observed != NULL)
        return false;
    *ret_answer = make_node(call, a, &path);
    return true;
}

/* Where the network is closed, binding a Unix socket stays the guest's own call: what it binds
 * can be reached by itself only. A thread that changes the address meanwhile gains a bound TCP
 * socket at most (Landlock forbids that too), and listening is judged on the socket. */
struct sp_answer sp_act_bind(struct sp_act_call *call)
{
    static struct sp_address a;
    if (!sp_network_read_address(call, sp_act_arg(call, 1), sp_act_arg(call, 2), &a))
        return sp_network_unreadable(call, sp_act_arg(call, 2));
    struct sp_answer answer;
    if (node_decided(call, &a, &answer))
        return answer;
    if (call->s->reach == SP_REACH_JUDGED)
        return bind_judged(call, &a);
    if (call->s->reach == SP_REACH_CLOSED && a.family != AF_UNIX)
        return sp_network_deny(call, SP_ACT_CONNECT, "bind", a.text, &a, NULL, EACCES);
    if (sp_network_observe(call, SP_ACT_CONNECT, "bind", &a))
        return SP_CONTINUE;
    sp_network_record(call, SP_KIND_BIND, SP_ACT_CONNECT, "bind", &a, "observed");
    return SP_CONTINUE;
}

/* ---- listening ------------------------------------------------------------------------ */

/* What a socket listens on, once it listens: one that was never bound takes any address. */
static bool own_address(int fd, struct sp_address *ret_address)
{
    socklen_t size = sizeof ret_address->raw;
    memset(&ret_address->raw, 0, sizeof ret_address->raw);
    return getsockname(fd, &ret_address->raw.sa, &size) == 0 &&
           sp_address_take(ret_address, (int)size);
}

static struct sp_answer listen_on(struct sp_act_call *call, int fd,
                                  const struct sp_address *a)
{
    if (listen(fd, sp_act_int(call, 1)) != 0)
        return SP_REFUSE(errno);
    sp_sockets_settled(&call->s->sockets, fd);
    sp_network_record(call, SP_KIND_BIND, SP_ACT_NONE, "listen", a, NULL);
    return SP_RETURN(0);
}

static struct sp_answer listen_judged(struct sp_act_call *call)
{
    static struct sp_address a;
    sp_auto_fd fd = take(call);
    if (fd < 0)
        return SP_REFUSE(-fd);
    if (!own_address(fd, &a))
        return SP_REFUSE(EINVAL);
    if (a.family == AF_UNIX)
        return listen_on(call, fd, NULL);
    struct sp_answer answer = SP_REFUSE(EACCES);
    if (!sp_address_is_inet(&a) ||
        refused(call, "listen", SP_ACT_NONE, fd, &a, &answer))
        return answer;
    return listen_on(call, fd, &a);
}

/* Listening opens a port even on a socket that was never bound. It is done on the socket that
 * was judged, since another thread may put a different one under the number. */
struct sp_answer sp_act_listen(struct sp_act_call *call)
{
    if (call->s->reach == SP_REACH_OPEN) {
        sp_network_record(call, SP_KIND_BIND, SP_ACT_NONE, "listen", NULL, NULL);
        return SP_CONTINUE;
    }
    if (call->s->reach == SP_REACH_JUDGED) {
        struct sp_answer answer =
            sp_watchdog_begin() ? listen_judged(call) : SP_REFUSE(EAGAIN);
        sp_watchdog_end();
        return answer;
    }
    sp_auto_fd fd =
        sp_sockets_take(&call->s->sockets, (pid_t)call->n->pid, sp_act_int(call, 0));
    if (fd == -EACCES)
        return sp_network_deny(call, SP_ACT_NONE, "listen", "a socket", NULL, NULL,
                               EACCES);
    if (fd < 0)
        return SP_REFUSE(-fd);
    return listen_on(call, fd, NULL);
}
