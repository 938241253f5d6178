/* Compiles, builds and enters the Landlock domains of a run. */
#include "seal/landlock/ruleset.h"

#include <fcntl.h>
#include <signal.h>

#include "base/scope.h"
#include "sys/landlock.h"

/* Rights that say something about a folder only: EINVAL in a rule on any other file. */
#define FOLDER_RIGHTS                                                                  \
    (SP_FS_READ_DIR | SP_FS_REMOVE_DIR | SP_FS_REMOVE_FILE | SP_FS_MAKE_CHAR |         \
     SP_FS_MAKE_DIR | SP_FS_MAKE_REG | SP_FS_MAKE_SOCK | SP_FS_MAKE_FIFO |             \
     SP_FS_MAKE_BLOCK | SP_FS_MAKE_SYM | SP_FS_REFER)

static uint64_t known_fs(int abi)
{
    uint64_t rights = (SP_FS_MAKE_SYM << 1) - 1;
    if (abi >= 2)
        rights |= SP_FS_REFER;
    if (abi >= 3)
        rights |= SP_FS_TRUNCATE;
    if (abi >= 5)
        rights |= SP_FS_IOCTL_DEV;
    return rights;
}

void sp_landlock_compile(const struct sp_landlock_features *features,
                         struct sp_landlock *ret_landlock)
{
    int abi = features->abi > 0 ? features->abi : 0;
    ret_landlock->abi = abi;
    ret_landlock->handled_fs = 0;
    ret_landlock->handled_net = 0;
    ret_landlock->scoped = 0;
    ret_landlock->paths_count = 0;
    if (abi >= 6)
        ret_landlock->scoped =
            SP_SCOPE_SIGNAL | (features->network_denied ? SP_SCOPE_ABSTRACT_UNIX : 0);
    if (abi >= 4 && features->network_denied)
        ret_landlock->handled_net = SP_NET_BIND_TCP | SP_NET_CONNECT_TCP;
    /* Once any domain of a process handles rights on files, each of them must grant moves
     * between folders. With ABI 1 none can: the supervisor goes without a domain there, so
     * that it can move files for the guest. */
    if (abi == 0 || (abi == 1 && !features->writes_guarded))
        return;
    /* Device nodes come nowhere: one that was moved to where the guest may write would give it
     * the device, and the broker moves by name. */
    uint64_t handled = SP_FS_REFER | SP_FS_MAKE_CHAR | SP_FS_MAKE_BLOCK;
    if (features->writes_guarded)
        handled |= SP_FS_WRITE_FILE | SP_FS_TRUNCATE;
    if (features->writes_judged)
        handled |= SP_FS_REMOVE_DIR | SP_FS_REMOVE_FILE | SP_FS_MAKE_DIR |
                   SP_FS_MAKE_REG | SP_FS_MAKE_SOCK | SP_FS_MAKE_FIFO | SP_FS_MAKE_SYM;
    if (features->reads_judged)
        handled |= SP_FS_READ_FILE | SP_FS_READ_DIR;
    if (features->programs_guarded)
        handled |= SP_FS_EXECUTE;
    ret_landlock->handled_fs = handled & known_fs(abi);
    /* Where moves are judged, they are granted with the rest of a folder's rights. */
    if (abi >= 2 && !features->writes_judged) {
        ret_landlock->paths[0] = (struct sp_landlock_path){"/", SP_FS_REFER};
        ret_landlock->paths_count = 1;
    }
}

int sp_landlock_grant(struct sp_landlock *landlock, const char *path, uint64_t access,
                      struct sp_error *reterr)
{
    access &= landlock->handled_fs & known_fs(landlock->abi);
    if (access == 0)
        return 0;
    if (landlock->paths_count == SP_LANDLOCK_PATHS_MAX)
        return sp_fail(reterr, SP_E_POLICY, "the policy grants more than %u paths",
                       SP_LANDLOCK_PATHS_MAX);
    landlock->paths[landlock->paths_count++] = (struct sp_landlock_path){path, access};
    return 0;
}

bool sp_landlock_scoped(const struct sp_landlock *landlock)
{
    return landlock->scoped != 0;
}

bool sp_landlock_empty(const struct sp_landlock *landlock)
{
    return landlock->handled_fs == 0 && landlock->handled_net == 0 &&
           landlock->scoped == 0;
}

/* A longer attribute than the kernel knows is refused (E2BIG) if its tail is not zero,
 * and some that do not check such a refusal run unconfined: give each kernel the size
 * it has. */
static size_t attr_size(int abi)
{
    if (abi >= 6)
        return sizeof(struct sp_landlock_ruleset_attr);
    if (abi >= 4)
        return offsetof(struct sp_landlock_ruleset_attr, scoped);
    return offsetof(struct sp_landlock_ruleset_attr, handled_net);
}

static int fail_host(struct sp_error *reterr, int err, const char *act)
{
    errno = -err;
    sp_fail_errno(reterr, SP_E_HOST, "%s", act);
    return reterr != NULL ? sp_error_what(reterr, "landlock") : SP_E_HOST;
}

static int add_path(int ruleset, const struct sp_landlock_path *path,
                    struct sp_error *reterr)
{
    sp_auto_fd fd = open(path->path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        /* Nobody gets there, then; what is not granted is forbidden. */
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES ||
            errno == ENAMETOOLONG)
            return 0;
        return sp_fail_errno(reterr, SP_E_HOST, "open '%s' for Landlock", path->path);
    }
    struct sp_landlock_path_attr attr = {path->access, fd};
    int rc = sp_sys_landlock_add(ruleset, &attr);
    if (rc == -EINVAL && (path->access & FOLDER_RIGHTS) != 0) {
        attr.access &= ~FOLDER_RIGHTS;
        rc = attr.access == 0 ? 0 : sp_sys_landlock_add(ruleset, &attr);
    }
    /* EBADFD: what the name leads to lies in no file system. */
    return rc == 0 || rc == -EBADFD ? 0 : fail_host(reterr, rc, "add a Landlock rule");
}

int sp_landlock_build(const struct sp_landlock *landlock, int *ret_fd,
                      struct sp_error *reterr)
{
    if (landlock->abi < 1) {
        sp_fail(reterr, SP_E_HOST, "this kernel has no Landlock");
        return reterr != NULL ? sp_error_what(reterr, "landlock") : SP_E_HOST;
    }
    struct sp_landlock_ruleset_attr attr = {landlock->handled_fs, landlock->handled_net,
                                            landlock->scoped};
    sp_auto_fd fd = sp_sys_landlock_create(&attr, attr_size(landlock->abi), 0);
    if (fd < 0)
        return fail_host(reterr, fd, "create a Landlock ruleset");
    for (unsigned i = 0; i < landlock->paths_count; i++) {
        int rc = add_path(fd, &landlock->paths[i], reterr);
        if (rc != 0)
            return rc;
    }
    *ret_fd = sp_steal_fd(&fd);
    return 0;
}

int sp_landlock_enter(int ruleset)
{
    return sp_sys_landlock_restrict(ruleset);
}

/* "/proc/PID/environ", without stdio: this runs between fork and exec. */
static const char *environ_path(pid_t pid, char buffer[static 40])
{
    static const char head[] = "/proc/";
    static const char tail[] = "/environ";
    char digits[12];
    unsigned count = 0;
    for (unsigned rest = (unsigned)pid; rest > 0 || count == 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    char *end = buffer;
    for (const char *c = head; *c != '\0'; c++)
        *end++ = *c;
    while (count > 0)
        *end++ = digits[--count];
    for (const char *c = tail; *c != '\0'; c++)
        *end++ = *c;
    *end = '\0';
    return buffer;
}

int sp_landlock_self_test(pid_t supervisor, bool scoped)
{
    if (scoped)
        return kill(supervisor, 0) < 0 && errno == EPERM ? 0 : -1;
    char path[40];
    int fd = open(environ_path(supervisor, path), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return -1;
    }
    return errno == EACCES || errno == EPERM ? 0 : -1;
}
