#include "agent/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring/call.h"

/* High enough not to be the number that a program expects its next descriptor to have. */
#define CHANNEL_FD_MIN 500

enum way {
    WAY_NONE,
    WAY_CALL,
    WAY_SOCKET,
};

static enum way way = WAY_NONE;
static int channel_fd = -1;

union rights {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

static bool send_request(const struct sp_channel_request *request, int answer_fd)
{
    struct iovec part = {.iov_base = (void *)request, .iov_len = sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union rights rights = {0};
    if (answer_fd >= 0) {
        message.msg_control = &rights;
        message.msg_controllen = sizeof rights;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &answer_fd, sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(channel_fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *request;
}

/* The value, or the descriptor that came with it. */
static int64_t receive_answer(int fd)
{
    int64_t value = -EPIPE;
    struct iovec part = {.iov_base = &value, .iov_len = sizeof value};
    union rights rights = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = sizeof rights};
    ssize_t n;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof value)
        return -EPIPE;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int))) {
        int received;
        memcpy(&received, CMSG_DATA(c), sizeof received);
        return received;
    }
    return value;
}

static int64_t socket_call(const struct sp_channel_request *request)
{
    if (request->op == SP_CALL_KICK)
        return send_request(request, -1) ? 0 : -EPIPE;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int64_t result = -EPIPE;
    bool sent = send_request(request, pair[1]);
    /* Ours must go, or a supervisor that dies would leave us waiting. */
    close(pair[1]);
    if (sent)
        result = receive_answer(pair[0]);
    close(pair[0]);
    return result;
}

/* Takes the channel out of the program's sight: out of the environment, off the low
 * descriptor numbers, closed at exec. */
static bool take_socket(void)
{
    const char *value = getenv(SP_CHANNEL_VARIABLE);
    if (!value)
        return false;
    char *end;
    long fd = strtol(value, &end, 10);
    bool valid = *value && !*end && fd >= 0 && fd <= INT32_MAX;
    unsetenv(SP_CHANNEL_VARIABLE);
    if (!valid)
        return false;
    channel_fd = fcntl((int)fd, F_DUPFD_CLOEXEC, CHANNEL_FD_MIN);
    if (channel_fd < 0)
        channel_fd = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
    if (channel_fd < 0)
        return false;
    close((int)fd);
    return true;
}

int64_t sp_channel_open(uint32_t version_hex)
{
    int err = errno;
    way = WAY_CALL;
    int64_t fd = sp_call(SP_CALL_HELLO, SP_HELLO_EXEC, version_hex, 0);
    /* ENOSYS without a filter of ours, or what a filter around us answers (a container's). */
    if (fd < 0 && take_socket()) {
        way = WAY_SOCKET;
        fd = sp_call(SP_CALL_HELLO, SP_HELLO_EXEC, version_hex, 0);
    }
    if (fd < 0)
        way = WAY_NONE;
    errno = err;
    return fd;
}

bool sp_channel_degraded(void)
{
    return way == WAY_SOCKET;
}

int64_t sp_call(enum sp_call_op op, uint64_t a1, uint64_t a2, uint64_t a3)
{
    int64_t result = -ENOSYS;
    switch (way) {
    case WAY_CALL:
        do
            result = sp_raw_call(op, a1, a2, a3);
        while (result == -EINTR);
        break;
    case WAY_SOCKET: {
        int err = errno;
        result = socket_call(&(struct sp_channel_request){op, a1, a2, a3});
        errno = err;
        break;
    }
    case WAY_NONE:
        break;
    }
    return result;
}
