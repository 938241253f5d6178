#include "supervise/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/observe.h"
#include "supervise/supervisor.h"

/* As the agent sends it (src/agent/channel.h). */
struct request {
    uint64_t operation;
    uint64_t arguments[3];
};

union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
};

int sp_channel_make(struct sp_supervisor *s, int *ret_guest, struct sp_error *reterr)
{
    int ends[2];
    int on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot make the agents' channel");
    s->channel = ends[0];
    *ret_guest = ends[1];
    return 0;
}

/* One message, its sender and the descriptor it brought (-1: none). */
static ssize_t receive(int fd, struct request *ret_request, pid_t *ret_pid,
                       int *ret_answer)
{
    union control control;
    struct iovec part = {ret_request, sizeof *ret_request};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *ret_pid = 0;
    *ret_answer = -1;
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL;
         c = CMSG_NXTHDR(&message, c)) {
        struct ucred sender;
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof sender)) {
            memcpy(&sender, CMSG_DATA(c), sizeof sender);
            *ret_pid = sender.pid;
        } else if (c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int))) {
            memcpy(ret_answer, CMSG_DATA(c), sizeof(int));
        }
    }
    return n;
}

static void reply(int to, int64_t value, int descriptor)
{
    union control control = {0};
    struct iovec part = {&value, sizeof value};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
    }
    (void)sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool sp_channel_take(struct sp_supervisor *s)
{
    struct request request;
    pid_t pid;
    int number;
    ssize_t n = receive(s->channel, &request, &pid, &number);
    sp_auto_fd answer_to = number;
    if (n == 0)
        return false;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n != (ssize_t)sizeof request || pid == 0)
        return true;
    struct seccomp_notif n_call = {.pid = (uint32_t)pid, .data = {.nr = SP_CALL_NR}};
    n_call.data.args[0] = request.operation;
    memcpy(&n_call.data.args[1], request.arguments, sizeof request.arguments);
    struct sp_act_call call = {
        .s = s, .n = &n_call, .process = sp_notify_process(s, pid, &n_call.data)};
    if (call.process == NULL)
        return true;
    struct sp_answer answer = sp_observe(&call, sp_act_agent);
    bool gives = answer.kind == SP_ANSWER_GIVE;
    int64_t value = answer.kind == SP_ANSWER_REFUSE ? -answer.value : answer.value;
    if (answer_to >= 0)
        reply(answer_to, gives ? 0 : value, gives ? (int)answer.value : -1);
    if (gives)
        close((int)answer.value);
    if (answer.drain && call.process->lane != NULL)
        sp_lane_drain(call.process->lane, s->writer, 0);
    return true;
}
