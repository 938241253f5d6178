"""Programs in C that try the network's side doors, and race what is judged."""

from __future__ import annotations

import subprocess

HEAD = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct sockaddr_in address(const char *host, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}
static struct sockaddr_in granted, denied;
static struct iovec part = {"x", 1};
"""

# argv: door, port granted, port denied. Prints "in" when the call that should lead out succeeded.
DOORS = (
    HEAD
    + r"""
static int fastopen_sendto(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    return sendto(s, "x", 1, 0x20000000, (void *)&denied, sizeof denied) > 0;
}
static int fastopen_sendmsg(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct msghdr m = {.msg_name = &denied, .msg_namelen = sizeof denied, .msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(s, &m, 0x20000000) > 0;
}
static int fastopen_sendmmsg(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct mmsghdr m = {{.msg_name = &denied, .msg_namelen = sizeof denied, .msg_iov = &part, .msg_iovlen = 1}, 0};
    return sendmmsg(s, &m, 1, 0x20000000) > 0;
}
static int fastopen_connect(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    int set = setsockopt(s, IPPROTO_TCP, 30, &one, sizeof one);
    return set == 0 && connect(s, (void *)&denied, sizeof denied) == 0 && send(s, "x", 1, 0) > 0;
}
static int mptcp(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 262);
    return s >= 0 && connect(s, (void *)&denied, sizeof denied) == 0;
}
static int later_entry(void)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct mmsghdr m[3] = {0};
    for (int i = 0; i < 3; i++)
        m[i].msg_hdr = (struct msghdr){.msg_name = i == 2 ? (void *)&denied : (void *)&granted,
            .msg_namelen = sizeof denied, .msg_iov = &part, .msg_iovlen = 1};
    int n = sendmmsg(s, m, 3, 0);
    if (n >= 2 && (m[0].msg_len != 1 || m[1].msg_len != 1))
        puts("lengths");
    return n == 3;
}
static int high_pointer(void)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in *high = mmap((void *)0x100000000, 4096, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (high == MAP_FAILED)
        return 0;
    *high = denied;
    return sendto(s, "x", 1, 0, (void *)high, sizeof denied) > 0;
}
static int no_family(void) /* IPv4 takes an address without a family for one */
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    denied.sin_family = AF_UNSPEC;
    return sendto(s, "x", 1, 0, (void *)&denied, sizeof denied) > 0;
}
static int reconnect(void) /* a socket that was connected where it may, and let go again */
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    if (connect(s, (void *)&granted, sizeof granted) || connect(s, &none, sizeof none))
        return 0;
    return connect(s, (void *)&denied, sizeof denied) == 0 && send(s, "x", 1, 0) > 0;
}
static int connected_sendto(void) /* the address of a send comes before that of the connection */
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    return connect(s, (void *)&granted, sizeof granted) == 0 &&
           sendto(s, "x", 1, 0, (void *)&denied, sizeof denied) > 0;
}
static int inherited(void) /* in a child that has the socket from its parent */
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    if (vfork() == 0)
        _exit(sendto(s, "x", 1, 0, (void *)&denied, sizeof denied) > 0);
    int status = 0;
    extern int wait(int *);
    wait(&status);
    return status != 0;
}
static int routed(void) /* a route of its own: over the denied host */
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    unsigned char options[8] = {131, 7, 4};
    memcpy(options + 3, &denied.sin_addr, 4);
    return setsockopt(s, IPPROTO_IP, 4, options, 8) == 0;
}
static int routed_message(void)
{
    int s = socket(AF_INET6, SOCK_DGRAM, 0);
    union { struct cmsghdr head; char bytes[CMSG_SPACE(24)]; } c = {0};
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = granted.sin_port};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
    struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1,
                       .msg_control = &c, .msg_controllen = sizeof c};
    c.head = (struct cmsghdr){CMSG_LEN(24), IPPROTO_IPV6, 57}; /* IPV6_RTHDR */
    return sendmsg(s, &m, 0) > 0;
}
static int joined(void)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreqn group = {.imr_multiaddr.s_addr = inet_addr("239.1.2.3"),
                             .imr_address.s_addr = htonl(INADDR_LOOPBACK)};
    return setsockopt(s, IPPROTO_IP, 35, &group, sizeof group) == 0;
}
static int bound_datagram(void)
{
    struct sockaddr_in any = address("0.0.0.0", 0);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    return bind(s, (void *)&any, sizeof any) == 0;
}
static int bound_without_family(void)
{
    struct sockaddr_in any = address("0.0.0.0", 0);
    any.sin_family = AF_UNSPEC;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    return bind(s, (void *)&any, sizeof any) == 0;
}
static int auto_bound(void)
{
    return listen(socket(AF_INET, SOCK_STREAM, 0), 1) == 0;
}
static int raw_socket(void)
{
    return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0 || socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) >= 0;
}
static int packet(void) { return socket(AF_PACKET, SOCK_DGRAM, 0) >= 0; }
static int vsock(void) { return socket(AF_VSOCK, SOCK_STREAM, 0) >= 0; }
static int netlink(void) { return socket(AF_NETLINK, SOCK_RAW, 0) >= 0; }
static const struct { const char *name; int (*open)(void); } doors[] = {
    {"fastopen_sendto", fastopen_sendto}, {"fastopen_sendmsg", fastopen_sendmsg},
    {"fastopen_sendmmsg", fastopen_sendmmsg}, {"fastopen_connect", fastopen_connect},
    {"mptcp", mptcp}, {"later_entry", later_entry}, {"high_pointer", high_pointer},
    {"no_family", no_family}, {"reconnect", reconnect}, {"connected_sendto", connected_sendto},
    {"inherited", inherited}, {"routed", routed}, {"routed_message", routed_message},
    {"joined", joined}, {"bound_datagram", bound_datagram},
    {"bound_without_family", bound_without_family}, {"auto_bound", auto_bound},
    {"raw_socket", raw_socket}, {"packet", packet}, {"vsock", vsock}, {"netlink", netlink}};
int main(int argc, char **argv)
{
    granted = address("127.0.0.1", atoi(argv[2]));
    denied = address("127.0.0.1", atoi(argv[3]));
    for (unsigned i = 0; i < sizeof doors / sizeof *doors; i++)
        if (strcmp(doors[i].name, argv[1]) == 0)
            puts(doors[i].open() ? "in" : "out");
    (void)argc;
    return 0;
}
"""
)

# argv: way, port granted, port denied, tries. A second thread changes the address all the time.
# Prints how many tries succeeded and how many were refused.
RACE = (
    HEAD
    + r"""
static struct sockaddr_in racing;
static struct msghdr header = {.msg_iovlen = 1};
static struct mmsghdr vector[2];
static volatile int done;
static int numbers[2] = {-1, -1};
static void *flip(void *u)
{
    volatile in_port_t *port = &racing.sin_port;
    for (unsigned i = 0; !done; i++)
        *port = i & 1 ? denied.sin_port : granted.sin_port;
    return u;
}
static void *flip_number(void *u) /* a descriptor's: of a TCP socket and of a datagram one */
{
    while (!done) {
        dup2(numbers[0], 200);
        dup2(numbers[1], 200);
    }
    return u;
}
static int once(const char *way)
{
    int datagram = strncmp(way, "udp", 3) == 0;
    int s = socket(AF_INET, datagram ? SOCK_DGRAM : SOCK_STREAM, 0), one = 1, result = -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (strcmp(way, "tcp-nonblocking") == 0) {
        fcntl(s, F_SETFL, O_NONBLOCK);
        result = connect(s, (void *)&racing, sizeof racing);
        result = result && errno == EINPROGRESS ? 0 : result;
    } else if (strcmp(way, "tcp") == 0) {
        result = connect(s, (void *)&racing, sizeof racing);
    } else if (strcmp(way, "tcp-bind") == 0) {
        result = bind(s, (void *)&racing, sizeof racing);
    } else if (strcmp(way, "udp-sendto") == 0) {
        result = sendto(s, "x", 1, 0, (void *)&racing, sizeof racing);
    } else if (strcmp(way, "udp-connect") == 0) {
        result = connect(s, (void *)&racing, sizeof racing);
        if (result == 0)
            send(s, "x", 1, 0);
    } else if (strcmp(way, "udp-sendmsg") == 0) {
        header.msg_name = &racing;
        header.msg_namelen = sizeof racing;
        header.msg_iov = &part;
        result = sendmsg(s, &header, 0);
    } else if (strcmp(way, "udp-sendmmsg") == 0) {
        for (int i = 0; i < 2; i++)
            vector[i].msg_hdr = (struct msghdr){.msg_name = &racing, .msg_namelen = sizeof racing,
                                                .msg_iov = &part, .msg_iovlen = 1};
        result = sendmmsg(s, vector, 2, 0);
    } else if (strcmp(way, "udp-bind") == 0) {
        result = bind(s, (void *)&racing, sizeof racing);
        if (result == 0) { /* where it was bound in truth */
            struct sockaddr_in own;
            socklen_t size = sizeof own;
            getsockname(s, (void *)&own, &size);
            if (own.sin_port == denied.sin_port)
                puts("bound");
        }
    } else if (strcmp(way, "udp-number") == 0) { /* what is a stream is not judged by its address */
        header.msg_name = &denied;
        header.msg_namelen = sizeof denied;
        header.msg_iov = &part;
        result = sendmsg(200, &header, MSG_NOSIGNAL);
    }
    int err = errno;
    close(s);
    errno = err;
    return result;
}
int main(int argc, char **argv)
{
    int tries = atoi(argv[4]), yes = 0, no = 0;
    pthread_t t;
    granted = address("127.0.0.1", atoi(argv[2]));
    denied = address("127.0.0.1", atoi(argv[3]));
    racing = granted;
    if (strcmp(argv[1], "udp-number") == 0) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        numbers[0] = pair[0];
        numbers[1] = socket(AF_INET, SOCK_DGRAM, 0);
        dup2(numbers[0], 200);
    }
    pthread_create(&t, NULL, numbers[0] < 0 ? flip : flip_number, NULL);
    /* On a busy machine the other thread may not get to run for long. */
    for (int i = 0; i < tries || (numbers[0] < 0 && (yes == 0 || no == 0) && i < tries * 10); i++) {
        if (once(argv[1]) >= 0)
            yes++;
        else
            no++;
        if ((i & 63) == 0)
            sched_yield();
    }
    done = 1;
    printf("%d %d\n", yes, no);
    (void)argc;
    return 0;
}
"""
)


def build(folder, source, name):
    (folder / f"{name}.c").write_text(source)
    command = ["cc", "-O2", "-w", "-pthread", "-o", folder / name, folder / f"{name}.c"]
    subprocess.run(command, check=True)
    return folder / name
