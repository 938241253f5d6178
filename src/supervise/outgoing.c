#include "supervise/outgoing.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/guest.h"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#define UDP_SEGMENT_OPTION 103

/* The most that the kernel sends in one call. */
#define BYTES_MAX 0x7ffff000u

static int read_name(pid_t tid, uint64_t name, uint32_t size,
                     struct sp_outgoing *message)
{
    if (name == 0 || size == 0)
        return 0;
    if ((int)size < 0)
        return -EINVAL;
    if (size > sizeof message->name.raw)
        size = sizeof message->name.raw; /* as the kernel does */
    if (sp_guest_read(tid, name, &message->name.raw, size) != 0)
        return -EFAULT;
    message->named = sp_address_take(&message->name, (int)size);
    return message->named ? 0 : -EINVAL;
}

static int add_parts(struct sp_outgoing *message)
{
    for (size_t i = 0; i < message->parts_count; i++) {
        struct sp_outgoing_part *part = &message->parts[i];
        if ((int64_t)part->size < 0)
            return -EINVAL;
        if (part->size > BYTES_MAX - message->left)
            part->size = BYTES_MAX - message->left;
        message->left += part->size;
    }
    return 0;
}

int sp_outgoing_simple(pid_t tid, uint64_t from, uint64_t size, uint64_t name,
                       uint64_t name_size, struct sp_outgoing *ret_message)
{
    *ret_message = (struct sp_outgoing){.parts_count = 1};
    ret_message->parts = calloc(1, sizeof *ret_message->parts);
    if (ret_message->parts == NULL)
        return -ENOMEM;
    ret_message->parts[0] =
        (struct sp_outgoing_part){from, size > BYTES_MAX ? BYTES_MAX : size};
    int code = add_parts(ret_message);
    return code == 0 ? read_name(tid, name, (uint32_t)name_size, ret_message) : code;
}

static int read_parts(pid_t tid, uint64_t from, size_t count,
                      struct sp_outgoing *message)
{
    if (count > SP_OUTGOING_PARTS_MAX)
        return -EMSGSIZE;
    if (count == 0)
        return 0;
    message->parts = calloc(count, sizeof *message->parts);
    if (message->parts == NULL)
        return -ENOMEM;
    message->parts_count = count;
    if (sp_guest_read(tid, from, message->parts, count * sizeof *message->parts) != 0)
        return -EFAULT;
    return add_parts(message);
}

/* ---- what travels beside it ----------------------------------------------------------- */

/* Numbers are the kernel's: the headers of distributions lack some. A route of the sender's
 * choice would lead past the address that was judged. */
static bool may_travel(const struct cmsghdr *c)
{
    switch (c->cmsg_level) {
    case SOL_SOCKET: /* time stamps, marks: the kernel's to allow */
        return true;
    case IPPROTO_IP: /* TOS, TTL, PKTINFO */
        return c->cmsg_type == 1 || c->cmsg_type == 2 || c->cmsg_type == 8;
    case IPPROTO_IPV6: /* PKTINFO, HOPLIMIT and their old forms, FLOWINFO, DONTFRAG, TCLASS */
        return c->cmsg_type == 50 || c->cmsg_type == 2 || c->cmsg_type == 52 ||
               c->cmsg_type == 8 || c->cmsg_type == 11 || c->cmsg_type == 62 ||
               c->cmsg_type == 67;
    case SOL_UDP:
        return c->cmsg_type == UDP_SEGMENT_OPTION;
    case SOL_TLS:
        return true;
    default:
        return false;
    }
}

/* Descriptors are the guest's numbers, and become ours. */
static int take_fds(pid_t tid, struct cmsghdr *c, struct sp_outgoing *message)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (message->fds == NULL)
        message->fds = calloc(SP_OUTGOING_FDS_MAX, sizeof *message->fds);
    if (message->fds == NULL)
        return -ENOMEM;
    if (count > SP_OUTGOING_FDS_MAX - message->fds_count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        int fd;
        unsigned char *at = CMSG_DATA(c) + i * sizeof fd;
        memcpy(&fd, at, sizeof fd);
        fd = sp_guest_take_fd(tid, fd);
        if (fd < 0)
            return fd;
        message->fds[message->fds_count++] = fd;
        memcpy(at, &fd, sizeof fd);
    }
    return 0;
}

/* Leaves out who the sender is: the kernel says so by itself. */
static int sift(pid_t tid, int domain, struct msghdr *from, struct sp_outgoing *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(from); c != NULL; c = CMSG_NXTHDR(from, c)) {
        size_t room = (size_t)((unsigned char *)from->msg_control +
                               from->msg_controllen - (unsigned char *)c);
        if (c->cmsg_len < sizeof *c || c->cmsg_len > room)
            return -EINVAL;
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            continue;
        if (!may_travel(c))
            return -EPERM;
        bool rights = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS;
        int code = 0;
        if (rights)
            code = domain == AF_UNIX ? take_fds(tid, c, message) : -EINVAL;
        if (code != 0)
            return code;
        size_t space = CMSG_ALIGN(c->cmsg_len);
        memcpy(message->control + message->control_size, c, c->cmsg_len);
        message->control_size += space;
    }
    return 0;
}

static int read_control(pid_t tid, int domain, uint64_t from, size_t size,
                        struct sp_outgoing *message)
{
    static union {
        struct cmsghdr head;
        unsigned char bytes[SP_OUTGOING_CONTROL_MAX];
    } raw;
    if (from == 0 || size == 0)
        return 0;
    if (size > sizeof raw)
        return -ENOBUFS;
    message->control = calloc(1, SP_OUTGOING_CONTROL_MAX);
    if (message->control == NULL)
        return -ENOMEM;
    if (sp_guest_read(tid, from, &raw, size) != 0)
        return -EFAULT;
    struct msghdr header = {.msg_control = &raw, .msg_controllen = size};
    return sift(tid, domain, &header, message);
}

int sp_outgoing_read(pid_t tid, uint64_t header, int domain,
                     struct sp_outgoing *ret_message)
{
    struct msghdr h;
    *ret_message = (struct sp_outgoing){0};
    if (sp_guest_read(tid, header, &h, sizeof h) != 0)
        return -EFAULT;
    int code =
        read_name(tid, (uint64_t)(uintptr_t)h.msg_name, h.msg_namelen, ret_message);
    if (code == 0)
        code =
            read_parts(tid, (uint64_t)(uintptr_t)h.msg_iov, h.msg_iovlen, ret_message);
    if (code == 0)
        code = read_control(tid, domain, (uint64_t)(uintptr_t)h.msg_control,
                            h.msg_controllen, ret_message);
    return code;
}

/* ---- payload -------------------------------------------------------------------------- */

ssize_t sp_outgoing_peek(pid_t tid, const struct sp_outgoing *message, void *to,
                         size_t room)
{
    size_t got = 0;
    uint64_t past = message->past;
    for (size_t i = message->part; i < message->parts_count && got < room; i++) {
        const struct sp_outgoing_part *part = &message->parts[i];
        size_t size =
            part->size - past < room - got ? (size_t)(part->size - past) : room - got;
        if (size > 0 &&
            sp_guest_read(tid, part->from + past, (char *)to + got, size) != 0)
            return -EFAULT;
        got += size;
        past = 0;
    }
    return (ssize_t)got;
}

void sp_outgoing_advance(struct sp_outgoing *message, size_t size)
{
    message->left -= size;
    while (size > 0) {
        uint64_t rest = message->parts[message->part].size - message->past;
        if (size < rest) {
            message->past += size;
            return;
        }
        size -= (size_t)rest;
        message->past = 0;
        message->part++;
    }
}

void sp_outgoing_drop_control(struct sp_outgoing *message)
{
    for (size_t i = 0; i < message->fds_count; i++)
        close(message->fds[i]);
    free(message->fds);
    free(message->control);
    message->fds = NULL;
    message->control = NULL;
    message->fds_count = message->control_size = 0;
}

void sp_outgoing_release(struct sp_outgoing *message)
{
    sp_outgoing_drop_control(message);
    free(message->parts);
    message->parts = NULL;
}
