/* Sends with an address, and every sendmsg where acts are judged.
 *
 * The address lies in the guest's memory, so the kernel never gets to read it there: the
 * message is copied, its destination judged, and the copy sent on the guest's own socket. A
 * stream has no destination of its own and is sent piece by piece.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/network.h"
#include "supervise/sending.h"
#include "supervise/unix_end.h"
#include "sys/guest.h"
#include "sys/watchdog.h"

#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

#define VECTOR_MAX 1024u /* the kernel's own limit for sendmmsg */

/* ---- whom it goes to ------------------------------------------------------------------ */

/* Of IPv4, the kernel takes a destination without a family for one; of IPv6, for none. */
static void settle(struct sp_send *send)
{
    struct sp_address *to = &send->message.name;
    if (to->family == AF_UNSPEC && send->domain == AF_INET6)
        send->message.named = false;
    if (to->family == AF_UNSPEC && send->domain == AF_INET) {
        to->raw.sa.sa_family = AF_INET;
        sp_address_take(to, (int)to->size);
    }
    sp_address_settle(to);
}

static int judge_unix(struct sp_act_call *call, int fd, struct sp_send *send)
{
    const struct sp_address *to = &send->message.name;
    struct sp_unix_end end;
    if (to->size <= offsetof(struct sockaddr_un, sun_path))
        return -EINVAL;
    int result = sp_unix_end_find(call, fd, to, &end);
    send->object = end.object;
    if (result == -EACCES)
        (void)sp_network_deny(call, SP_ACT_CONNECT, "send", to->text, to,
                              end.judged ? &end.verdict : NULL, EACCES);
    return result;
}

/* 0, or -errno when it may not go there; then that is told. */
static int judge(struct sp_act_call *call, int fd, struct sp_send *send)
{
    struct sp_outgoing *m = &send->message;
    if (!m->named)
        return 0;
    if (send->type != SOCK_DGRAM) { /* takes no notice of an address */
        m->named = false;
        return send->domain == AF_UNIX && sp_send_is_stream(send) ? -EISCONN : 0;
    }
    if (send->domain == AF_UNIX)
        return m->name.family == AF_UNIX ? judge_unix(call, fd, send) : -EINVAL;
    settle(send);
    if (!m->named)
        return 0;
    if (!sp_address_is_inet(&m->name))
        return m->name.family == AF_INET || m->name.family == AF_INET6 ? -EINVAL
                                                                       : -EAFNOSUPPORT;
    struct sp_verdict verdict = sp_network_judge(call, &m->name);
    if (verdict.action == SP_ALLOW)
        return 0;
    (void)sp_network_deny(call, SP_ACT_CONNECT, "send", m->name.text, &m->name,
                          &verdict, EACCES);
    return -EACCES;
}

/* A broken pipe is told by a signal as well. */
static void signal_pipe(pid_t pid, pid_t tid, const struct sp_send *send, int flags)
{
    if (sp_send_is_stream(send) && (flags & MSG_NOSIGNAL) == 0)
        syscall(SYS_tgkill, pid, tid, SIGPIPE);
}

static struct sp_answer over(pid_t pid, pid_t tid, const struct sp_send *send,
                             int result)
{
    if (result == 0 || send->sent > 0)
        return SP_RETURN((int64_t)send->sent);
    if (result == -EPIPE)
        signal_pipe(pid, tid, send, send->flags);
    return SP_REFUSE(-result);
}

/* Takes `fd` and `send`. */
static struct sp_answer wait_on(struct sp_act_call *call, int fd, struct sp_send *send)
{
    struct sp_parked *p = sp_park(call, SP_PARKED_SEND);
    uint64_t patience = sp_sockets_patience_ns(fd);
    if (p == NULL) {
        sp_close_fd(&fd);
        sp_send_release(send);
        return SP_REFUSE(EAGAIN);
    }
    p->fd = fd;
    p->send = send;
    p->interruptible = true;
    p->interrupted = patience != 0 ? EINTR : SP_PARKED_RESTART;
    p->deadline_ns = patience != 0 ? sp_clock_ns() + patience : 0;
    /* Whether a Unix peer has room for a datagram, its sender cannot wait for. */
    if ((send->domain == AF_UNIX && !sp_send_is_stream(send)) ||
        !sp_park_watch(call->s, p, EPOLLOUT))
        sp_park_pause(call->s, p);
    return SP_LATER;
}

/* Of a vector, only the first entry is ever waited for. */
static struct sp_answer over_later(const struct sp_parked *p, int result)
{
    if (p->send->vector == 0 || (result != 0 && p->send->sent == 0))
        return over(p->pid, p->tid, p->send, result);
    return sp_send_write_length(p->tid, p->send) == 0 ? SP_RETURN(1)
                                                      : SP_REFUSE(EFAULT);
}

struct sp_answer sp_send_again(struct sp_supervisor *s, struct sp_parked *p)
{
    uint64_t before = p->send->sent;
    bool safe = sp_watchdog_begin();
    int result = safe ? sp_send_push(p->tid, p->fd, p->send) : -EAGAIN;
    sp_watchdog_end();
    if (result == -EAGAIN) {
        if (p->send->sent == before)
            sp_park_pause(s, p);
        return SP_LATER;
    }
    return over_later(p, result);
}

/* ---- the calls ------------------------------------------------------------------------ */

/* The socket, and what kind it is. */
static int look(struct sp_act_call *call, struct sp_send *send)
{
    socklen_t size = sizeof send->type;
    int fd = sp_sockets_take_any(&call->s->sockets, call->process->pidfd,
                                 (pid_t)call->n->pid, sp_act_int(call, 0));
    if (fd < 0)
        return fd;
    int flags = fcntl(fd, F_GETFL);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &send->type, &size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &send->domain, &size) != 0) {
        close(fd);
        return -EACCES;
    }

    send->blocks =
        flags >= 0 && (flags & O_NONBLOCK) == 0 && (send->flags & MSG_DONTWAIT) == 0;
    send->flags |= MSG_DONTWAIT;
    return fd;
}

static void tell(struct sp_act_call *call, const struct sp_send *send, int result)
{
    struct sp_answer done =
        result == 0 || result == -EAGAIN ? SP_RETURN(0) : SP_REFUSE(-result);
    if (send->message.named)
        sp_network_record_done(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "send",
                               &send->message.name, &done);
}

/* The message at `header`; what may not travel beside it is told of. */
static int read_message(struct sp_act_call *call, uint64_t header, struct sp_send *send)
{
    int result =
        sp_outgoing_read((pid_t)call->n->pid, header, send->domain, &send->message);
    if (result == -EPERM)
        (void)sp_network_deny(call, SP_ACT_CONNECT, "send", "a route of its own",
                              send->message.named ? &send->message.name : NULL, NULL,
                              EPERM);
    return result;
}

/* One message. Takes `send`. */
static struct sp_answer send_one(struct sp_act_call *call, struct sp_send *send)
{
    pid_t tid = (pid_t)call->n->pid;
    int fd = look(call, send);
    int result = fd < 0 ? fd : 0;
    if (fd >= 0 && call->n->data.nr == SYS_sendto)
        result = sp_outgoing_simple(tid, sp_act_arg(call, 1), sp_act_arg(call, 2),
                                    sp_act_arg(call, 4), sp_act_arg(call, 5),
                                    &send->message);
    else if (fd >= 0)
        result = read_message(call, sp_act_arg(call, 1), send);
    if (result == 0 && !sp_notify_valid(call))
        result = -EFAULT;
    if (result == 0)
        result = judge(call, fd, send);
    if (result == 0) {
        result = sp_send_push(tid, fd, send);
        tell(call, send, result);
        if (result == -EAGAIN && send->blocks)
            return wait_on(call, fd, send);
    }
    struct sp_answer answer = over(call->process->pid, tid, send, result);
    sp_close_fd(&fd);
    sp_send_release(send);
    return answer;
}

/* The next entry of a vector; its count of bytes goes back into the guest. */
static int send_entry(struct sp_act_call *call, int fd, struct sp_send *send)
{
    pid_t tid = (pid_t)call->n->pid;
    uint64_t at = send->vector + send->entry * sizeof(struct mmsghdr);
    sp_outgoing_release(&send->message);
    sp_close_fd(&send->object);
    send->sent = 0;
    send->whole = false;
    int result = read_message(call, at, send);
    if (result == 0 && !sp_notify_valid(call))
        result = -EFAULT;
    if (result == 0)
        result = judge(call, fd, send);
    if (result == 0) {
        result = sp_send_push(tid, fd, send);
        tell(call, send, result);
    }
    if (result == -EAGAIN && send->sent > 0) /* a part of a stream's message */
        result = 0;
    return result == 0 ? sp_send_write_length(tid, send) : result;
}

/* Several. As the kernel does, it says how many went, and an error only when none did; it waits,
 * at most, for the first. */
static struct sp_answer send_vector(struct sp_act_call *call, struct sp_send *send)
{
    unsigned count = (unsigned)sp_act_int(call, 2);
    send->vector = sp_act_arg(call, 1);
    send->entries = count > VECTOR_MAX ? VECTOR_MAX : count;
    int fd = look(call, send);
    int result = fd < 0 ? fd : 0;
    while (result == 0 && send->entry < send->entries) {
        result = send_entry(call, fd, send);
        send->entry += result == 0;
    }
    if (result == -EAGAIN && send->entry == 0 && send->blocks)
        return wait_on(call, fd, send);
    if (result == -EPIPE && send->entry == 0)
        signal_pipe(call->process->pid, (pid_t)call->n->pid, send, send->flags);
    unsigned done = send->entry;
    sp_close_fd(&fd);
    sp_send_release(send);
    if (done > 0 || result == 0)
        return SP_RETURN(done);
    return SP_REFUSE(-result);
}

static struct sp_answer send_judged(struct sp_act_call *call, int flags)
{
    struct sp_send *send = calloc(1, sizeof *send);
    if (send == NULL)
        return SP_REFUSE(ENOMEM);
    send->object = -1;
    send->flags = flags;
    if ((flags & MSG_ZEROCOPY) != 0) { /* the pages would be ours */
        sp_send_release(send);
        return SP_REFUSE(ENOBUFS);
    }
    bool safe = sp_watchdog_begin();
    struct sp_answer answer = SP_REFUSE(EAGAIN);
    if (!safe)
        sp_send_release(send);
    else if (call->n->data.nr == SYS_sendmmsg)
        answer = send_vector(call, send);
    else
        answer = send_one(call, send);
    sp_watchdog_end();
    return answer;
}

/* ---- where the network is open or closed ---------------------------------------------- */

/* Where the address that is sent to lies: an argument of the call, or in the guest's msghdr, of
 * several messages the first one's. No size: there is none. */
struct destination {
    uint64_t at;
    uint64_t size;
};

static struct destination destination_of(const struct sp_act_call *call)
{
    struct msghdr header;
    if (call->n->data.nr == SYS_sendto)
        return (struct destination){sp_act_arg(call, 4), sp_act_arg(call, 5)};
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 1), &header,
                      sizeof header) != 0 ||
        header.msg_name == NULL)
        return (struct destination){0};
    return (struct destination){(uint64_t)(uintptr_t)header.msg_name,
                                header.msg_namelen};
}

static int flags_of(const struct sp_act_call *call)
{
    return sp_act_int(call, call->n->data.nr == SYS_sendmsg ? 2 : 3);
}

struct sp_answer sp_act_send(struct sp_act_call *call)
{
    static struct sp_address a;
    int flags = flags_of(call);
    bool message = call->n->data.nr != SYS_sendto;
    bool judged = call->s->reach == SP_REACH_JUDGED && (flags & MSG_FASTOPEN) == 0;
    if (judged && !call->s->sockets.keep_dups)
        return send_judged(call, flags);
    struct destination to = destination_of(call);
    /* To whom the socket is connected: that was judged. */
    if (message && to.size == 0 && (flags & MSG_FASTOPEN) == 0)
        return SP_CONTINUE;
    bool readable = sp_network_read_address(call, to.at, to.size, &a);
    /* Only streams exist, which take no notice of an address, and stand-ins. */
    if (judged &&
        !(readable && sp_sockets_is_stand_in(&call->s->sockets, (pid_t)call->n->pid,
                                             sp_act_int(call, 0))))
        return SP_CONTINUE;
    const char *target = readable ? a.text : "an address";
    if ((flags & MSG_FASTOPEN) != 0)
        return sp_network_deny(call, SP_ACT_CONNECT, "send", target,
                               readable ? &a : NULL, NULL, EOPNOTSUPP);
    if (!readable)
        return sp_network_unreadable(call, to.size);
    if (call->s->reach == SP_REACH_OPEN) {
        if (sp_network_observe(call, SP_ACT_CONNECT, "send", &a))
            return SP_CONTINUE;
        sp_network_record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "send", &a,
                          "observed");
        return SP_CONTINUE;
    }
    /* Unix stream sockets take no address, connected or not: the kernel refuses it. */
    if (a.family == AF_UNIX)
        return SP_REFUSE(EISCONN);
    return sp_network_deny(call, SP_ACT_CONNECT, "send", target, &a, NULL, EACCES);
}
