/* Which calls of a number are meant, told by their register arguments.
 *
 * What is compared is what the kernel uses: the low 32 bits of an int, so that 1 << 32
 * cannot hide a request (CVE-2019-7303, CVE-2019-10063), and both halves of a pointer,
 * so that one at a multiple of 4 GiB is not taken for NULL. What a pointer leads to is
 * never looked at.
 *
 * Values are written out: headers of distributions lack the newer ones, and they are
 * the same on x86-64 and aarch64 unless a comment says otherwise.
 */
#include "seal/seccomp/guard.h"

#define JEQ          (BPF_JMP | BPF_JEQ | BPF_K)
#define JSET         (BPF_JMP | BPF_JSET | BPF_K)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* O_ACCMODE, O_CREAT, O_TRUNC and the bit of O_TMPFILE that is its own: a read-only
 * open has none of them. */
#define OPEN_CHANGES (00000003u | 00000100u | 00001000u | 020000000u)

#define O_ACCMODE_BITS 00000003u
#define O_TRUNC_BIT    00001000u

#define MSG_FASTOPEN_BIT 0x20000000u

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, PTRACE, UNTRACED.
 * The bit of NEWTIME is part of the exit signal in clone(2). */
#define CLONE_FORBIDDEN                                                                \
    (0x00020000u | 0x02000000u | 0x04000000u | 0x08000000u | 0x10000000u |             \
     0x20000000u | 0x40000000u | 0x00002000u | 0x00800000u)
#define CLONE_VM_BIT     0x00000100u
#define CLONE_VFORK_BIT  0x00004000u
#define CLONE_THREAD_BIT 0x00010000u

/* CLONE_FS, CLONE_FILES, CLONE_SYSVSEM: what unshare may be asked for. */
#define UNSHARE_HARMLESS (0x00000200u | 0x00000400u | 0x00040000u)

/* Values from `first` to `last`; a list ascends. */
struct range {
    uint32_t first;
    uint32_t last;
};

static const struct range fcntl_owner[] = {
    {8, 8},   /* F_SETOWN */
    {10, 10}, /* F_SETSIG */
    {15, 15}, /* F_SETOWN_EX */
};

static const struct range prctl_blinding[] = {
    {4, 4},   /* PR_SET_DUMPABLE: the supervisor could not read arguments */
    {22, 22}, /* PR_SET_SECCOMP */
    {28, 28}, /* PR_SET_SECUREBITS */
    {33, 33}, /* PR_MCE_KILL */
    {35, 35}, /* PR_SET_MM: other names for the process */
    {59, 59}, /* PR_SET_SYSCALL_USER_DISPATCH */
    {62, 62}, /* PR_SCHED_CORE */
    {0x59616d61, 0x59616d61}, /* PR_SET_PTRACER */
};

static const struct range personality_harmless[] = {
    {0, 0},                   /* PER_LINUX, what it is anyway */
    {0xffffffff, 0xffffffff}, /* the query */
};

/* TIOCSCTTY is not among them: a new session gets a controlling terminal by opening one
 * too, pty.fork() needs it, and nothing can be typed into it. */
static const struct range ioctl_dangerous[] = {
    {0x125d, 0x127f}, /* BLKROSET to BLKZEROOUT; the supervisor knows the getters */
    {0x4c00, 0x4c0a}, /* LOOP_SET_FD to LOOP_CONFIGURE */
    {0x4c80, 0x4c82}, /* LOOP_CTL_ADD, REMOVE, GET_FREE */
    {0x5412, 0x5412}, /* TIOCSTI */
    {0x541c, 0x541d}, /* TIOCLINUX, TIOCCONS */
    {0x5423, 0x5423}, /* TIOCSETD: line disciplines, much attacked */
    {0x8901, 0x8902}, /* FIOSETOWN, SIOCSPGRP: as fcntl_owner */
    {0xaa00, 0xaa00}, /* USERFAULTFD_IOC_NEW: as userfaultfd */
    {0xae00, 0xae01}, /* KVM_GET_API_VERSION, KVM_CREATE_VM: all else needs these */
    {0x400454ca, 0x400454ca}, /* TUNSETIFF */
    {0xc0045877, 0xc0045878}, /* FIFREEZE, FITHAW */
    {0xc0185879, 0xc0185879}, /* FITRIM */
};

static const struct range ioctl_harmless[] = {
    {0x5401, 0x540b},         /* TCGETS to TCFLSH */
    {0x540e, 0x5411},         /* TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCOUTQ */
    {0x5413, 0x5414},         /* TIOCGWINSZ, TIOCSWINSZ */
    {0x541b, 0x541b},         /* FIONREAD */
    {0x5421, 0x5422},         /* FIONBIO, TIOCNOTTY */
    {0x5429, 0x5429},         /* TIOCGSID */
    {0x5441, 0x5441},         /* TIOCGPTPEER */
    {0x5450, 0x5452},         /* FIONCLEX, FIOCLEX, FIOASYNC */
    {0x5460, 0x5460},         /* FIOQSIZE */
    {0x8903, 0x8907},         /* owner, mark and times of a socket, read */
    {0x8910, 0x8939},         /* network interfaces; changes need CAP_NET_ADMIN */
    {0x40045431, 0x40045431}, /* TIOCSPTLCK */
    {0x40049409, 0x40049409}, /* FICLONE */
    {0x4020940d, 0x4020940d}, /* FICLONERANGE */
    {0x402c542b, 0x402c542d}, /* TCSETS2, TCSETSW2, TCSETSF2 */
    {0x80045430, 0x80045430}, /* TIOCGPTN */
    {0x80086601, 0x80086601}, /* FS_IOC_GETFLAGS */
    {0x802c542a, 0x802c542a}, /* TCGETS2 */
};

/* Guards that look at one int: at bits of it, or whether it is in a list. */
static const struct simple {
    uint8_t argument;
    bool listed_passes; /* the list is of what the guard does not mean */
    uint16_t ranges;    /* 0: bits */
    uint32_t bits;      /* any of them set */
    const struct range *list;
} simple[SP_GUARD_COUNT] = {
    [SP_GUARD_OPEN] = {1, .bits = OPEN_CHANGES},
    [SP_GUARD_OPENAT] = {2, .bits = OPEN_CHANGES},
    [SP_GUARD_SENDMSG] = {2, .bits = MSG_FASTOPEN_BIT},
    [SP_GUARD_EXECUTABLE] = {2, .bits = 4},
    [SP_GUARD_SENDMMSG] = {3, .bits = MSG_FASTOPEN_BIT},
    [SP_GUARD_OTHER_PID] = {0, .bits = UINT32_MAX},
    [SP_GUARD_UNSHARE] = {0, .bits = ~UNSHARE_HARMLESS},
    [SP_GUARD_FCNTL_OWNER] = {1, false, COUNT(fcntl_owner), .list = fcntl_owner},
    [SP_GUARD_PRCTL] = {0, false, COUNT(prctl_blinding), .list = prctl_blinding},
    [SP_GUARD_IOCTL] = {1, false, COUNT(ioctl_dangerous), .list = ioctl_dangerous},
    [SP_GUARD_IOCTL_UNLISTED] = {1, true, COUNT(ioctl_harmless),
                                 .list = ioctl_harmless},
    [SP_GUARD_PERSONALITY] = {0, true, COUNT(personality_harmless),
                              .list = personality_harmless},
};

#define RANGES_MAX 32u

static void add_list(struct sp_bpf *bpf, const struct simple *s, sp_bpf_ref listed,
                     sp_bpf_ref others)
{
    struct sp_span spans[2 * RANGES_MAX + 1];
    size_t count = 0;
    SP_BUG_ON(s->ranges > RANGES_MAX);
    if (s->list[0].first != 0)
        spans[count++] = (struct sp_span){0, others};
    for (unsigned i = 0; i < s->ranges; i++) {
        spans[count++] = (struct sp_span){s->list[i].first, listed};
        if (s->list[i].last != UINT32_MAX)
            spans[count++] = (struct sp_span){s->list[i].last + 1, others};
    }
    sp_bpf_add_tree(bpf, spans, count);
}

static void add_simple(struct sp_bpf *bpf, const struct simple *s, sp_bpf_ref hit,
                       sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, s->argument);
    if (s->ranges == 0)
        sp_bpf_add(bpf, JSET, s->bits, hit, miss);
    else
        add_list(bpf, s, s->listed_passes ? miss : hit, s->listed_passes ? hit : miss);
}

/* Families of requests that file systems answer: 'f', 'X', and btrfs's; which of them only ask, the
 * supervisor knows. */
static void add_ioctl_files(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 1);
    sp_bpf_add(bpf, BPF_ALU | BPF_AND | BPF_K, 0xff00, SP_BPF_NEXT, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 0x6600, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 0x5800, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 0x9400, hit, SP_BPF_NEXT);
    add_simple(bpf, &simple[SP_GUARD_IOCTL], hit, miss);
}

/* Opens that can write need a right for that anyway; those that can neither read nor write, for
 * none. */
static void add_empties(struct sp_bpf *bpf, unsigned argument, sp_bpf_ref hit,
                        sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, argument);
    sp_bpf_add(bpf, BPF_ALU | BPF_AND | BPF_K, O_ACCMODE_BITS | O_TRUNC_BIT,
               SP_BPF_NEXT, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, O_TRUNC_BIT, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, O_TRUNC_BIT | O_ACCMODE_BITS, hit, miss);
}

/* A stream or seqpacket pair of AF_UNIX passes. The type also carries flags. */
static void add_socketpair(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 0);
    sp_bpf_add(bpf, JEQ, 1, SP_BPF_NEXT, hit);
    sp_bpf_load_low(bpf, 1);
    sp_bpf_add(bpf, BPF_ALU | BPF_AND | BPF_K, 0xf, SP_BPF_NEXT, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 1, miss, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 5, miss, hit);
}

/* An address, or a connection opened by sending. */
static void add_sendto(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 4);
    sp_bpf_add(bpf, JEQ, 0, SP_BPF_NEXT, hit);
    sp_bpf_load_high(bpf, 4);
    sp_bpf_add(bpf, JEQ, 0, SP_BPF_NEXT, hit);
    sp_bpf_load_low(bpf, 3);
    sp_bpf_add(bpf, JSET, MSG_FASTOPEN_BIT, hit, miss);
}

/* SOL_IP and SOL_IPV6, which what stands in for a datagram socket does not know; IPPROTO_TCP,
 * TCP_FASTOPEN_CONNECT, and where acts are judged TCP_ULP. */
static void add_setsockopt(struct sp_bpf *bpf, bool judged, sp_bpf_ref hit,
                           sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 1);
    sp_bpf_add(bpf, JEQ, 0, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 41, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 6, SP_BPF_NEXT, miss);
    sp_bpf_load_low(bpf, 2);
    if (judged)
        sp_bpf_add(bpf, JEQ, 31, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JEQ, 30, hit, miss);
}

/* A process that shares memory without being a thread could change the arguments of
 * another behind the supervisor's back and outlive it; vfork's parent sleeps meanwhile.
 * */
static void add_clone(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 0);
    sp_bpf_add(bpf, JSET, CLONE_FORBIDDEN, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JSET, CLONE_VM_BIT, SP_BPF_NEXT, miss);
    sp_bpf_add(bpf, JSET, CLONE_VFORK_BIT | CLONE_THREAD_BIT, miss, hit);
}

/* Whatever shares memory as a thread of the process is no other process. */
static void add_clone_process(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 0);
    sp_bpf_add(bpf, JSET, CLONE_FORBIDDEN, hit, SP_BPF_NEXT);
    sp_bpf_add(bpf, JSET, CLONE_THREAD_BIT, miss, hit);
}

/* Anything but (`which`, 0). */
static void add_other(struct sp_bpf *bpf, uint32_t which, sp_bpf_ref hit,
                      sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 0);
    sp_bpf_add(bpf, JEQ, which, SP_BPF_NEXT, hit);
    sp_bpf_load_low(bpf, 1);
    sp_bpf_add(bpf, JEQ, 0, miss, hit);
}

/* SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_NEW_LISTENER. */
static void add_listener(struct sp_bpf *bpf, sp_bpf_ref hit, sp_bpf_ref miss)
{
    sp_bpf_load_low(bpf, 0);
    sp_bpf_add(bpf, JEQ, 1, SP_BPF_NEXT, miss);
    sp_bpf_load_low(bpf, 1);
    sp_bpf_add(bpf, JSET, 8, hit, miss);
}

void sp_guard_add(struct sp_bpf *bpf, enum sp_guard guard, sp_bpf_ref hit,
                  sp_bpf_ref miss)
{
    switch (guard) {
    case SP_GUARD_OPEN_EMPTIES:
        add_empties(bpf, 1, hit, miss);
        return;
    case SP_GUARD_OPENAT_EMPTIES:
        add_empties(bpf, 2, hit, miss);
        return;
    case SP_GUARD_IOCTL_FILES:
        add_ioctl_files(bpf, hit, miss);
        return;
    case SP_GUARD_SOCKETPAIR:
        add_socketpair(bpf, hit, miss);
        return;
    case SP_GUARD_SENDTO:
        add_sendto(bpf, hit, miss);
        return;
    case SP_GUARD_SETSOCKOPT:
    case SP_GUARD_SETSOCKOPT_JUDGED:
        add_setsockopt(bpf, guard == SP_GUARD_SETSOCKOPT_JUDGED, hit, miss);
        return;
    case SP_GUARD_CLONE:
        add_clone(bpf, hit, miss);
        return;
    case SP_GUARD_CLONE_PROCESS:
        add_clone_process(bpf, hit, miss);
        return;
    case SP_GUARD_OTHER_PRIO: /* PRIO_PROCESS is 0, IOPRIO_WHO_PROCESS 1 */
        add_other(bpf, 0, hit, miss);
        return;
    case SP_GUARD_OTHER_IOPRIO:
        add_other(bpf, 1, hit, miss);
        return;
    case SP_GUARD_LISTENER:
        add_listener(bpf, hit, miss);
        return;
    default:
        SP_BUG_ON(simple[guard].bits == 0 && simple[guard].ranges == 0);
        add_simple(bpf, &simple[guard], hit, miss);
    }
}
