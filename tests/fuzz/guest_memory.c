#include "guest_memory.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SKIPPED 77

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local,
                                unsigned long local_count, const struct iovec *remote,
                                unsigned long remote_count, unsigned long flags);
int __wrap_sp_guest_write(pid_t tid, uint64_t address, const void *from, size_t size);

static uint8_t memory[GUEST_SIZE];

void guest_memory_set(const uint8_t *data, size_t size)
{
    const size_t n = size < sizeof memory ? size : sizeof memory;
    if (n > 0)
        memcpy(memory, data, n);
    memset(memory + n, 0, sizeof memory - n);
}

void guest_memory_put(uint64_t address, uint64_t value)
{
    memcpy(memory + (address - GUEST_BASE), &value, sizeof value);
}

void guest_memory_get(uint64_t address, void *to, size_t size)
{
    memcpy(to, memory + (address - GUEST_BASE), size);
}

/* How many of the bytes there are: up to where the memory ends. */
static size_t mapped(uint64_t address, size_t size)
{
    if (address < GUEST_BASE || address >= GUEST_BASE + GUEST_SIZE)
        return 0;
    const uint64_t there = GUEST_BASE + GUEST_SIZE - address;
    return size < there ? size : (size_t)there;
}

/* The supervisor reads one piece at a time. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local,
                                unsigned long local_count, const struct iovec *remote,
                                unsigned long remote_count, unsigned long flags)
{
    const uint64_t address = (uint64_t)(uintptr_t)remote[0].iov_base;
    const size_t n = mapped(address, remote[0].iov_len);
    (void)pid;
    if (local_count != 1 || remote_count != 1 || flags != 0 ||
        local[0].iov_len < remote[0].iov_len)
        abort();
    if (n == 0) {
        errno = EFAULT;
        return -1;
    }
    memcpy(local[0].iov_base, memory + (address - GUEST_BASE), n);
    return (ssize_t)n;
}

int __wrap_sp_guest_write(pid_t tid, uint64_t address, const void *from, size_t size)
{
    (void)tid;
    if (mapped(address, size) != size)
        return -EFAULT;
    if (size > 0)
        memcpy(memory + (address - GUEST_BASE), from, size);
    return 0;
}

/* ---- hands ------------------------------------------------------------------------------ */

static const int tied[] = {
#ifdef SYS_mkdir
    SYS_mkdir,
    SYS_rmdir,
    SYS_unlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_mknod,
#endif
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_truncate,
    SYS_fchmod,
    SYS_fchmodat,
    452 /* fchmodat2 */,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    463 /* setxattrat */,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    466 /* removexattrat */,
    469 /* file_setattr */,
    SYS_mknodat,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_kill,
    SYS_tkill,
    SYS_pidfd_send_signal,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_execve,
    SYS_execveat,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setaffinity,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
    SYS_sched_setattr,
    SYS_ioctl};
#define TIED_COUNT (sizeof tied / sizeof *tied)

/* Each of them fails with EPERM. */
void guest_tie_hands(void)
{
    struct sock_filter code[2 * TIED_COUNT + 2];
    size_t n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < TIED_COUNT; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                 (unsigned)tied[i], 0, 1);
        code[n++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        exit(SKIPPED);
    }
}
