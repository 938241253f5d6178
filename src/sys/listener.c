#include "sys/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif
/* COMPAT(kernel 6.6 headers): SECCOMP_IOCTL_NOTIF_SET_FLAGS and its one flag. */
#define NOTIF_SET_FLAGS    SECCOMP_IOW(4, __u64)
#define NOTIF_SYNC_WAKE_UP 1UL

int sp_listener_receive(int fd, struct seccomp_notif *ret_notification)
{
    /* The kernel refuses a buffer that is not zeroed. */
    memset(ret_notification, 0, sizeof *ret_notification);
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, ret_notification) == 0)
        return 0;
    return errno == EINTR || errno == ENOENT || errno == EAGAIN ? -EAGAIN : -errno;
}

bool sp_listener_valid(int fd, uint64_t id)
{
    return ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int answer(int fd, struct seccomp_notif_resp *response)
{
    while (ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, response) != 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

int sp_listener_continue(int fd, uint64_t id)
{
    struct seccomp_notif_resp r = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    return answer(fd, &r);
}

int sp_listener_return(int fd, uint64_t id, int64_t value)
{
    struct seccomp_notif_resp r = {.id = id, .val = value};
    return answer(fd, &r);
}

int sp_listener_refuse(int fd, uint64_t id, int error)
{
    struct seccomp_notif_resp r = {.id = id, .error = -error};
    return answer(fd, &r);
}

int sp_listener_give(int fd, uint64_t id, int source, bool close_on_exec)
{
    struct seccomp_notif_addfd a = {.id = id,
                                    .flags = SECCOMP_ADDFD_FLAG_SEND,
                                    .srcfd = (uint32_t)source,
                                    .newfd_flags = close_on_exec ? O_CLOEXEC : 0};
    int given = ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a);
    if (given >= 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    /* COMPAT(kernel 5.14): no ADDFD_FLAG_SEND. */
    given = sp_listener_place(fd, id, source, close_on_exec);
    return given < 0 ? given : sp_listener_return(fd, id, given);
}

int sp_listener_place(int fd, uint64_t id, int source, bool close_on_exec)
{
    struct seccomp_notif_addfd a = {.id = id,
                                    .srcfd = (uint32_t)source,
                                    .newfd_flags = close_on_exec ? O_CLOEXEC : 0};
    int placed = ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a);
    return placed < 0 ? -errno : placed;
}

bool sp_listener_wake_locally(int fd)
{
    return ioctl(fd, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP) == 0;
}
