#include "notify_doors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "guest_memory.h"
#include "supervise/resolver.h"

/* ---- the listener ------------------------------------------------------------------------ */

struct notify_door door;

int __wrap_sp_listener_receive(int fd, struct seccomp_notif *ret_notification);
bool __wrap_sp_listener_valid(int fd, uint64_t id);
int __wrap_sp_listener_continue(int fd, uint64_t id);
int __wrap_sp_listener_return(int fd, uint64_t id, int64_t value);
int __wrap_sp_listener_refuse(int fd, uint64_t id, int error);
int __wrap_sp_listener_give(int fd, uint64_t id, int source, bool close_on_exec);
bool __wrap_sp_watchdog_begin(void);
void __wrap_sp_watchdog_end(void);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
bool __wrap_sp_resolver_ask(struct sp_resolver *resolver, uint32_t serial,
                            const struct sp_name_question *question);
int __wrap_sp_resolver_take(struct sp_resolver *resolver,
                            struct sp_resolver_answer *ret_answer);

int __wrap_sp_listener_receive(int fd, struct seccomp_notif *ret_notification)
{
    DEMAND(fd == LISTENER_FD);
    *ret_notification = door.next;
    return 0;
}

bool __wrap_sp_listener_valid(int fd, uint64_t id)
{
    DEMAND(fd == LISTENER_FD && id != 0);
    return true;
}

static int answer(uint64_t id)
{
    if (id == door.next.id)
        door.answers++;
    return 0;
}

int __wrap_sp_listener_continue(int fd, uint64_t id)
{
    (void)fd;
    return answer(id);
}

int __wrap_sp_listener_return(int fd, uint64_t id, int64_t value)
{
    (void)fd;
    (void)value;
    return answer(id);
}

int __wrap_sp_listener_refuse(int fd, uint64_t id, int error)
{
    (void)fd;
    DEMAND(error > 0 && error < 4096);
    return answer(id);
}

int __wrap_sp_listener_give(int fd, uint64_t id, int source, bool close_on_exec)
{
    (void)fd;
    (void)close_on_exec;
    DEMAND(fcntl(source, F_GETFD) >= 0);
    return answer(id);
}

bool __wrap_sp_watchdog_begin(void)
{
    return true;
}

void __wrap_sp_watchdog_end(void)
{
}

/* ---- the network --------------------------------------------------------------------------- */

struct notify_outside outside;

static unsigned next_luck(void)
{
    const unsigned luck = outside.luck & 3;
    outside.luck = (uint8_t)(outside.luck >> 2 | outside.luck << 6);
    return luck;
}

/* Nothing leaves this process. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t size = 0;
    DEMAND(fcntl(fd, F_GETFD) >= 0 && (flags & MSG_NOSIGNAL) != 0);
    for (size_t i = 0; i < message->msg_iovlen; i++)
        size += message->msg_iov[i].iov_len;
    const unsigned luck = next_luck();
    if (luck > 1) {
        errno = luck == 2 ? EAGAIN : EPIPE;
        return -1;
    }
    return (ssize_t)(luck == 1 && size > 1 ? size / 2 : size);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    static const int errors[] = {0, EINPROGRESS, EAGAIN, ECONNREFUSED};
    DEMAND(fcntl(fd, F_GETFD) >= 0 && address != NULL && size >= sizeof(sa_family_t));
    errno = errors[next_luck()];
    return errno == 0 ? 0 : -1;
}

bool __wrap_sp_resolver_ask(struct sp_resolver *resolver, uint32_t serial,
                            const struct sp_name_question *question)
{
    (void)resolver;
    DEMAND(memchr(question->host, '\0', sizeof question->host) != NULL);
    outside.serial = serial;
    outside.asked = true;
    return true;
}

/* As the real one hands it on, which has looked at what the network said. */
int __wrap_sp_resolver_take(struct sp_resolver *resolver,
                            struct sp_resolver_answer *ret_answer)
{
    (void)resolver;
    if (!outside.asked)
        return 0;
    outside.asked = false;
    guest_memory_get(GUEST_BASE + ANSWER_AT, &ret_answer->names,
                     sizeof ret_answer->names);
    ret_answer->names.count %= SP_NAME_ADDRESSES_MAX + 1;
    ret_answer->names.canonical[SP_NAME_BYTES - 1] = '\0';
    for (uint32_t i = 0; i < ret_answer->names.count; i++)
        if (ret_answer->names.addresses[i].family != AF_INET)
            ret_answer->names.addresses[i].family = AF_INET6;
    ret_answer->serial = outside.serial;
    return 1;
}
