/* Messages of a guest, on any bytes: nothing crashes, nothing is read past its end, and what may
 * not travel beside a message does not. The guest is this process.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fuzz.h"
#include "supervise/outgoing.h"

/* Every record lies within what was checked, and is of a kind that may travel. */
static void check_control(const struct sp_outgoing *m, int domain)
{
    struct msghdr h = {.msg_control = m->control, .msg_controllen = m->control_size};
    size_t fds = 0;
    DEMAND(m->control_size <= SP_OUTGOING_CONTROL_MAX);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c != NULL; c = CMSG_NXTHDR(&h, c)) {
        DEMAND(c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != 57);
        DEMAND(c->cmsg_level != IPPROTO_IP || c->cmsg_type != 7);
        DEMAND(c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS);
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            DEMAND(domain == AF_UNIX);
            fds += (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        }
    }
    DEMAND(fds == m->fds_count);
}

static void take_all(struct sp_outgoing *m, size_t step)
{
    static char payload[4096];
    while (m->left > 0) {
        ssize_t n = sp_outgoing_peek(getpid(), m, payload, step);
        if (n < 0)
            return;
        DEMAND((size_t)n == (m->left < step ? m->left : step));
        sp_outgoing_advance(m, (size_t)n);
    }
}

/* Bytes: domain, size of the address, number of parts, size of what travels beside; then these. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    int domain = (data[0] & 1) != 0 ? AF_UNIX : AF_INET6;
    size_t name = data[1];
    size_t parts = data[2];
    size_t control = (size_t)data[3] << 4;
    size_t at = 8;
    uint8_t *copy = malloc(size);
    struct iovec *iov = calloc(parts + 1, sizeof *iov);
    uint8_t *beside = calloc(1, control + 1);
    struct sp_outgoing m;
    DEMAND(copy != NULL && iov != NULL && beside != NULL);
    memcpy(copy, data, size);
    size_t left = size - at;
    memcpy(beside, copy + at, control < left ? control : left);
    for (size_t i = 0; i < parts; i++) {
        size_t from = at + (i * 7) % (left + 1);
        iov[i].iov_base = copy + from;
        iov[i].iov_len = (data[4] & 1) != 0 ? size - from : data[from % size];
    }
    struct msghdr header = {.msg_name = copy,
                            .msg_namelen = (socklen_t)(name < size ? name : size),
                            .msg_iov = (data[5] & 7) == 7 ? (void *)8 : iov,
                            .msg_iovlen = (data[5] & 8) != 0 ? parts << 8 : parts,
                            .msg_control = beside,
                            .msg_controllen = control};
    if (sp_outgoing_read(getpid(), (uint64_t)(uintptr_t)&header, domain, &m) == 0) {
        DEMAND(!m.named || m.name.size >= sizeof(sa_family_t));
        check_control(&m, domain);
        take_all(&m, 1 + data[6] % 4096u);
    }
    sp_outgoing_release(&m);
    free(beside);
    free(iov);
    free(copy);
    return 0;
}
