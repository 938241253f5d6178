/* Landlock's interface up to ABI 8, in our own words: the headers of distributions lag
 * behind (Debian 12 stops at ABI 2). Async-signal-safe.
 */
#ifndef SP_SYS_LANDLOCK_H
#define SP_SYS_LANDLOCK_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SP_LANDLOCK_ABI_MAX 8 /* the newest one we know; it restricts as the 7th does */

/* The same numbers on every architecture. */
#define SP_SYS_LANDLOCK_CREATE_RULESET 444
#define SP_SYS_LANDLOCK_ADD_RULE       445
#define SP_SYS_LANDLOCK_RESTRICT_SELF  446

#define SP_LANDLOCK_QUERY_ABI    1u
#define SP_LANDLOCK_QUERY_ERRATA 2u

#define SP_LANDLOCK_RULE_PATH 1

/* Rights on files. ABI 1 */
#define SP_FS_EXECUTE     (UINT64_C(1) << 0)
#define SP_FS_WRITE_FILE  (UINT64_C(1) << 1)
#define SP_FS_READ_FILE   (UINT64_C(1) << 2)
#define SP_FS_READ_DIR    (UINT64_C(1) << 3)
#define SP_FS_REMOVE_DIR  (UINT64_C(1) << 4)
#define SP_FS_REMOVE_FILE (UINT64_C(1) << 5)
#define SP_FS_MAKE_CHAR   (UINT64_C(1) << 6)
#define SP_FS_MAKE_DIR    (UINT64_C(1) << 7)
#define SP_FS_MAKE_REG    (UINT64_C(1) << 8)
#define SP_FS_MAKE_SOCK   (UINT64_C(1) << 9)
#define SP_FS_MAKE_FIFO   (UINT64_C(1) << 10)
#define SP_FS_MAKE_BLOCK  (UINT64_C(1) << 11)
#define SP_FS_MAKE_SYM    (UINT64_C(1) << 12)
#define SP_FS_REFER       (UINT64_C(1) << 13) /* ABI 2 */
#define SP_FS_TRUNCATE    (UINT64_C(1) << 14) /* ABI 3 */
#define SP_FS_IOCTL_DEV   (UINT64_C(1) << 15) /* ABI 5 */

/* Rights on the network. ABI 4 */
#define SP_NET_BIND_TCP    (UINT64_C(1) << 0)
#define SP_NET_CONNECT_TCP (UINT64_C(1) << 1)

/* What may not leave the domain. ABI 6 */
#define SP_SCOPE_ABSTRACT_UNIX (UINT64_C(1) << 0)
#define SP_SCOPE_SIGNAL        (UINT64_C(1) << 1)

struct sp_landlock_ruleset_attr {
    uint64_t handled_fs;
    uint64_t handled_net; /* ABI 4 */
    uint64_t scoped;      /* ABI 6 */
};

struct sp_landlock_path_attr {
    uint64_t access;
    int32_t parent_fd;
} __attribute__((packed));

/* Each: the call's result, or a negative errno. */
static inline int sp_sys_landlock_create(const struct sp_landlock_ruleset_attr *attr,
                                         size_t size, unsigned flags)
{
    long rc = syscall(SP_SYS_LANDLOCK_CREATE_RULESET, attr, size, flags);
    return rc < 0 ? -errno : (int)rc;
}

static inline int sp_sys_landlock_add(int ruleset,
                                      const struct sp_landlock_path_attr *attr)
{
    long rc =
        syscall(SP_SYS_LANDLOCK_ADD_RULE, ruleset, SP_LANDLOCK_RULE_PATH, attr, 0u);
    return rc < 0 ? -errno : 0;
}

static inline int sp_sys_landlock_restrict(int ruleset)
{
    long rc = syscall(SP_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0u);
    return rc < 0 ? -errno : 0;
}

#endif
