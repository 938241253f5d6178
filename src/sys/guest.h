/* Looking at a process of the run from outside: its memory, its paths, its kin. Everything
 * read here is a claim of the guest; a caller brackets it with sp_listener_valid().
 */
#ifndef SP_SYS_GUEST_H
#define SP_SYS_GUEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the memory of a child that is still a copy of this process can be read. Yama and filters
 * around us keep it from some. */
bool sp_guest_readable(pid_t pid);
#define SP_MEMORY_HIDDEN                                                               \
    "the memory of a program cannot be read here (Yama keeps it where "                \
    "kernel.yama.ptrace_scope is 2 or 3, as a filter around this process may), so "    \
    "that nothing it asks for could be judged or recorded"

/* Copies exactly `size` bytes. 0, or -EFAULT (unmapped, or the process hides its memory). */
int sp_guest_read(pid_t tid, uint64_t address, void *to, size_t size);

/* Copies a NUL-terminated text of at most size-1 bytes, page by page, so that one that ends
 * before an unmapped page is read. Returns its length; -EFAULT, or -ENAMETOOLONG when no NUL
 * came within size. */
ssize_t sp_guest_text(pid_t tid, uint64_t address, char *to, size_t size);

/* Writes exactly `size` bytes into its memory. 0, or -EFAULT. */
int sp_guest_write(pid_t tid, uint64_t address, const void *from, size_t size);

/* Whether a signal is waiting for the thread that it neither blocks nor ignores. */
bool sp_guest_interrupted(pid_t tid);

/* The process (thread group) of a thread and its parent; false when it is gone. */
struct sp_guest_ids {
    pid_t pid;
    pid_t parent;
    pid_t group;
    pid_t session;
    uint64_t start_ticks; /* since boot; with pid an identity that is not reused */
};
bool sp_guest_ids(pid_t tid, struct sp_guest_ids *ret_ids);

/* Link texts: /proc/TID/cwd, /proc/TID/fd/N, /proc/PID/exe. false when they cannot be read. */
bool sp_guest_cwd(pid_t tid, char to[PATH_MAX]);
bool sp_guest_fd_path(pid_t tid, int fd, char to[PATH_MAX]);
bool sp_guest_exe(pid_t pid, char to[PATH_MAX]);

/* By which signal a process has ended that its parent has not asked about yet; 0: by none, or it is
 * not that process any more. */
int sp_guest_zombie_signal(pid_t pid, uint64_t start_ticks);

/* A number that changes when the process becomes another program (0 when it cannot be told):
 * the stack of a fresh image begins elsewhere. */
uint64_t sp_guest_image(pid_t pid);

/* A descriptor of the memory that the process has now, or -1; and whether no process has that
 * memory any more (false where it cannot be told). A child between vfork and exec shares it with
 * its parent. */
int sp_guest_memory(pid_t pid);
bool sp_guest_memory_gone(int memory);

/* The process that a pidfd held by the thread refers to, 0 if it is none. */
pid_t sp_guest_pidfd_target(pid_t tid, int fd);

/* The process's file mode creation mask. */
unsigned sp_guest_umask(pid_t tid);

/* An O_PATH descriptor of what the thread's descriptor `fd` is (AT_FDCWD: its current folder). */
int sp_guest_open_fd(pid_t tid, int fd);

#define SP_GUEST_PROC_MAX 48u

/* Whether the descriptor is of something in procfs. */
bool sp_guest_in_proc(int fd);

/* Whether the path names something in procfs of a process of the run, as it is written:
 * "/proc/self/REST", "/proc/thread-self/REST", "/proc/PID/REST"; *ret_rest is behind the slash, ""
 * for the folder itself; `ret_folder` is that folder, called the same by anybody. */
bool sp_guest_proc_path(pid_t tid, const char *path, char ret_folder[SP_GUEST_PROC_MAX],
                        const char **ret_rest);

/* Whether the thread is gone, or blocked in another call than `nr`; false when it cannot be told,
 * as while it runs. */
bool sp_guest_waits_elsewhere(pid_t tid, int nr);

/* The inode of the socket that the thread's descriptor `fd` is, 0 if it is none. */
uint64_t sp_guest_socket(pid_t tid, int fd);

/* A duplicate of the thread's descriptor (pidfd_getfd), or a negative errno. */
int sp_guest_take_fd(pid_t tid, int fd);

/* The same for a socket, by a pidfd of the thread's process where that will do (-1: none).
 * -EBADF, -ENOTSOCK: it is none. */
int sp_guest_take_socket(pid_t tid, int pidfd, int fd);

/* Binds a Unix socket (`socket`, the guest's own description) to the path in `address` as the
 * thread would: from its folder, with its mask, under the rules of `ruleset` (-1: none). 0 or
 * -errno. */
struct sockaddr_un;
int sp_guest_bind_path(pid_t tid, int ruleset, int socket,
                       const struct sockaddr_un *address, unsigned size);
/* The same from another folder, an open one. */
int sp_guest_bind_in(pid_t tid, int folder, int ruleset, int socket,
                     const struct sockaddr_un *address, unsigned size);

/* Where the object lies that a link of procfs leads to, without what the kernel adds to the name
 * of one that was removed: a file may be called that way itself. What lies in no folder begins with
 * no slash ("pipe:[1]", "memfd:name"). */
bool sp_guest_link_path(const char *link, char to[PATH_MAX]);
/* The same of the thread's descriptor, or with AT_FDCWD of its folder. */
bool sp_guest_object_path(pid_t tid, int fd, char to[PATH_MAX]);

/* Whether the thread's descriptor was opened O_PATH: nothing can be done by it. */
bool sp_guest_fd_bare(pid_t tid, int fd);

/* An O_PATH descriptor for `path` as the thread sees it (its cwd or `dirfd`); flags as
 * O_NOFOLLOW. What procfs calls by magic names (/proc/self/fd/N, /proc/PID/root of a process of
 * the run, /dev/stdin) is looked up for the guest and followed to the object. Any other walk into
 * procfs is refused with -EACCES: it would be resolved for us instead of for the guest. */
int sp_guest_open_path(pid_t tid, int dirfd, const char *path, int flags);
/* The same, and how the walk went. */
struct sp_guest_walk {
    bool only_guest; /* it was refused as one into procfs */
    bool plain; /* the path leads where it says, for anybody (sp_open_plain()); where
                        nothing is, too */
};
int sp_guest_walk_path(pid_t tid, int dirfd, const char *path, int flags,
                       struct sp_guest_walk *ret_walk);

/* Where such a walk leads the thread, as a path that means the same for anybody: up to what is not
 * there, or to a magic name at the end, and the rest as it was written; `follow`: through a link at
 * the end. false: it does not go through procfs, or *ret_path is too short. Only names are looked
 * at: what they lead to may change. */
bool sp_guest_proc_walk(pid_t tid, int dirfd, const char *path, bool follow,
                        char ret_path[PATH_MAX]);

#endif
