/* Connecting.
 *
 * The copied address is judged, and the connection is made by us on the guest's own open file
 * description: nothing that another thread does to memory or descriptor numbers meanwhile
 * changes either. Where the guest's call would wait, it goes on waiting (parked.h) and we do
 * not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/scope.h"
#include "supervise/network.h"
#include "supervise/unix_end.h"
#include "sys/guest.h"
#include "sys/watchdog.h"

#define QUEUE_PAUSE_NS 5000000u /* nobody tells when a listener has room again */

/* One try on a descriptor of ours. 0 or -errno; -EINPROGRESS, -EALREADY and, of a Unix listener
 * without room, -EAGAIN: not yet. */
static int attempt(int fd, const struct sp_address *to, int object, bool *ret_blocks)
{
    struct sockaddr_un node;
    const struct sockaddr *address = &to->raw.sa;
    socklen_t size = to->size;
    if (object >= 0) {
        sp_unix_end_node(object, &node);
        address = (const struct sockaddr *)&node;
        size = sizeof node;
    }
    return sp_sockets_connect(fd, address, size, ret_blocks);
}

/* The guest's thread waits for what could not be done at once. Takes `fd` and `object`. */
static struct sp_answer wait_on(struct sp_act_call *call, const struct sp_address *to,
                                int fd, int object, bool queued)
{
    struct sp_parked *p = sp_park(call, queued ? SP_PARKED_QUEUE : SP_PARKED_CONNECT);
    uint64_t patience = sp_sockets_patience_ns(fd);
    if (p == NULL) {
        sp_close_fd(&fd);
        sp_close_fd(&object);
        return SP_REFUSE(EAGAIN);
    }
    p->fd = fd;
    p->object = object;
    p->address = *to;
    p->interruptible = true;
    p->interrupted = patience != 0 ? EINTR : SP_PARKED_RESTART;
    p->late = queued ? EAGAIN : EINPROGRESS;
    p->deadline_ns = patience != 0 ? sp_clock_ns() + patience : 0;
    if (queued || !sp_park_watch(call->s, p, EPOLLOUT))
        p->again_ns = sp_clock_ns() + QUEUE_PAUSE_NS;
    return SP_LATER;
}

/* Connects the guest's socket, which is granted. Takes `fd` (or what went wrong in taking it) and
 * `object`. *ret_told: it goes on from an earlier call, which was told of. */
static struct sp_answer perform(struct sp_act_call *call, const struct sp_address *to,
                                int fd, int object, bool *ret_told)
{
    bool blocks = false;
    int result = fd < 0 ? fd : attempt(fd, to, object, &blocks);
    bool queued = result == -EAGAIN && to->family == AF_UNIX;
    *ret_told = fd < 0 || (blocks && result == -EALREADY);
    if (fd >= 0 && (result == 0 || (result == -EINPROGRESS && !blocks)))
        sp_sockets_settled(&call->s->sockets, fd);
    if (blocks && (result == -EINPROGRESS || result == -EALREADY || queued))
        return wait_on(call, to, fd, object, queued);
    sp_close_fd(&fd);
    sp_close_fd(&object);
    return result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
}

struct sp_answer sp_connect_again(struct sp_supervisor *s, struct sp_parked *p)
{
    bool blocks = false;
    bool safe = sp_watchdog_begin();
    int result = safe ? attempt(p->fd, &p->address, p->object, &blocks) : -EAGAIN;
    sp_watchdog_end();
    if (p->kind == SP_PARKED_CONNECT && result == -EISCONN)
        result = 0; /* another thread's call has seen it through */
    if (result == -EINPROGRESS || result == -EALREADY ||
        (p->kind == SP_PARKED_QUEUE && result == -EAGAIN)) {
        sp_park_pause(s, p);
        return SP_LATER;
    }
    if (result == 0)
        sp_sockets_settled(&s->sockets, p->fd);
    return result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
}

static struct sp_answer connect_unix(struct sp_act_call *call, struct sp_address *a)
{
    struct sp_sockets *sockets = &call->s->sockets;
    struct sp_unix_end end;
    int fd = sp_sockets_take(sockets, (pid_t)call->n->pid, sp_act_int(call, 0));
    if (fd == -EACCES)
        return sp_network_deny(call, SP_ACT_CONNECT, "connect", a->text, a, NULL,
                               EACCES);
    if (fd < 0)
        return SP_REFUSE(-fd);
    int result = sp_unix_end_find(call, fd, a, &end);
    if (result != 0)
        sp_close_fd(&fd);
    if (result == -EACCES)
        return sp_network_deny(call, SP_ACT_CONNECT, "connect", a->text, a,
                               end.judged ? &end.verdict : NULL, EACCES);
    if (result != 0)
        return SP_REFUSE(-result);
    bool told;
    struct sp_answer answer = perform(call, a, fd, end.object, &told);
    if (answer.kind != SP_ANSWER_REFUSE && !told)
        sp_network_record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "connect", a, NULL);
    return answer;
}

/* The rest: INET by its address; without a family an association is dissolved. */
static struct sp_answer connect_judged(struct sp_act_call *call, struct sp_address *a)
{
    pid_t tid = (pid_t)call->n->pid;
    bool inet = sp_address_is_inet(a);
    /* Without a family, an association is dissolved; an address that is too short the kernel
     * refuses, or says what else is wrong. Neither leads anywhere. */
    bool nowhere = !inet && (a->family == AF_UNSPEC || a->family == AF_INET ||
                             a->family == AF_INET6 || a->family == AF_UNIX);
    bool stand_in = sp_sockets_is_stand_in(&call->s->sockets, tid, sp_act_int(call, 0));
    if (nowhere && stand_in)
        return SP_RETURN(0);
    if (stand_in)
        return sp_network_deny(call, SP_ACT_CONNECT, "connect", a->text, a, NULL,
                               EACCES);
    if (!inet && !nowhere)
        return sp_network_deny(call, SP_ACT_CONNECT, "connect", a->text, a, NULL,
                               EAFNOSUPPORT);
    if (inet) {
        sp_address_settle(a);
        struct sp_verdict verdict = sp_network_judge(call, a);
        if (verdict.action == SP_DENY)
            return sp_network_deny(call, SP_ACT_CONNECT, "connect", a->text, a,
                                   &verdict, EACCES);
    }
    int fd = sp_sockets_take_any(&call->s->sockets, call->process->pidfd, tid,
                                 sp_act_int(call, 0));
    if (fd == -EACCES) /* its duplicate was let go when it was connected */
        fd = -EISCONN;
    bool told;
    struct sp_answer answer = perform(call, a, fd, -1, &told);
    if (inet && !told)
        sp_network_record_done(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "connect", a,
                               &answer);
    return answer;
}

struct sp_answer sp_act_connect(struct sp_act_call *call)
{
    static struct sp_address a;
    struct sp_answer answer;
    if (!sp_network_read_address(call, sp_act_arg(call, 1), sp_act_arg(call, 2), &a))
        return sp_network_unreadable(call, sp_act_arg(call, 2));
    if (call->s->reach == SP_REACH_OPEN) {
        if (sp_network_observe(call, SP_ACT_CONNECT, "connect", &a))
            return SP_CONTINUE;
        sp_network_record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "connect", &a,
                          "observed");
        return SP_CONTINUE;
    }
    bool safe = sp_watchdog_begin();
    if (!safe)
        answer = SP_REFUSE(EAGAIN);
    else if (a.family == AF_UNIX && a.size > offsetof(struct sockaddr_un, sun_path))
        answer = connect_unix(call, &a);
    else if (call->s->reach == SP_REACH_JUDGED)
        answer = connect_judged(call, &a);
    else if (a.family ==
             AF_UNSPEC) /* dissolves an association: here none ever exists */
        answer = SP_RETURN(0);
    else
        answer =
            sp_network_deny(call, SP_ACT_CONNECT, "connect", a.text, &a, NULL, EACCES);
    sp_watchdog_end();
    return answer;
}
