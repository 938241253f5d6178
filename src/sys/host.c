/* The cheap questions to the kernel, and the lowering of its answers for tests. */
#include "sys/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/landlock.h"
#include "sys/trial.h"

static void ask_landlock(struct sp_host *host)
{
    int abi = sp_sys_landlock_create(NULL, 0, SP_LANDLOCK_QUERY_ABI);
    if (abi < 0)
        host->landlock_error = -abi;
    else
        host->landlock_abi = abi < SP_LANDLOCK_ABI_MAX ? abi : SP_LANDLOCK_ABI_MAX;
}

static void ask_seccomp(struct sp_host *host)
{
    unsigned action = SECCOMP_RET_USER_NOTIF;
    host->listener = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) == 0;
}

static void ask_names(struct sp_host *host)
{
    struct utsname name;
    if (uname(&name) != 0)
        return;
    snprintf(host->kernel, sizeof(host->kernel), "%s", name.release);
    snprintf(host->arch, sizeof(host->arch), "%.15s", name.machine);
}

static void assume(struct sp_host *host)
{
    host->wait_killable = true;
    host->sync_wake = true;
    host->addfd_send = true;
    host->pidfd_getfd = true;
    host->process_vm_readv = true;
    host->memory_file = true;
    host->tmpfile = true;
}

/* Yama's scope from which on reading another's memory takes a capability, which no supervisor has. */
#define YAMA_ADMIN_ONLY '2'

static bool yama_hides_memory(void)
{
    char scope = '0';
    sp_auto_fd fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &scope, 1) == 1 && scope >= YAMA_ADMIN_ONLY;
}

static void try_all(struct sp_host *host)
{
    int errata = sp_sys_landlock_create(NULL, 0, SP_LANDLOCK_QUERY_ERRATA);
    host->landlock_errata = errata > 0 ? (unsigned)errata : 0;
    sp_trial_child(host);
    if (yama_hides_memory())
        host->process_vm_readv = host->memory_file = false;
    sp_trial_places(host);
}

void sp_host_probe(struct sp_host *ret_host, enum sp_host_depth depth)
{
    memset(ret_host, 0, sizeof(*ret_host));
    ask_landlock(ret_host);
    ask_seccomp(ret_host);
    ask_names(ret_host);
    if (depth == SP_HOST_FULL)
        try_all(ret_host);
    else
        assume(ret_host);
    sp_host_lower(ret_host, getenv("SANDPIT_FORCE"));
}

bool sp_host_has_proc(void)
{
    return access("/proc/self/fd", X_OK) == 0;
}

static const struct {
    const char *name;
    size_t offset;
} switches[] = {
    {"listener", offsetof(struct sp_host, listener)},
    {"wait_killable", offsetof(struct sp_host, wait_killable)},
    {"sync_wake", offsetof(struct sp_host, sync_wake)},
    {"addfd_send", offsetof(struct sp_host, addfd_send)},
    {"pidfd_getfd", offsetof(struct sp_host, pidfd_getfd)},
    {"process_vm_readv", offsetof(struct sp_host, process_vm_readv)},
    {"memory_file", offsetof(struct sp_host, memory_file)},
    {"user_namespaces", offsetof(struct sp_host, user_namespaces)},
    {"cgroup", offsetof(struct sp_host, cgroup_writable)},
    {"tmpfile", offsetof(struct sp_host, tmpfile)},
};

static void lower_landlock(struct sp_host *host, const char *value, size_t size)
{
    if (size != 1 || value[0] < '0' || value[0] > '8')
        return;
    int abi = value[0] - '0';
    if (abi >= host->landlock_abi)
        return;
    host->landlock_abi = abi;
    if (abi == 0)
        host->landlock_error = ENOSYS;
}

static void lower_one(struct sp_host *host, const char *item, size_t size)
{
    const char *equals = memchr(item, '=', size);
    if (equals == NULL)
        return;
    size_t name_size = (size_t)(equals - item);
    const char *value = equals + 1;
    size_t value_size = size - name_size - 1;
    if (name_size == strlen("landlock") && memcmp(item, "landlock", name_size) == 0)
        lower_landlock(host, value, value_size);
    if (value_size != strlen("off") || memcmp(value, "off", value_size) != 0)
        return;
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (strlen(switches[i].name) == name_size &&
            memcmp(item, switches[i].name, name_size) == 0)
            *(bool *)((char *)host + switches[i].offset) = false;
    }
}

void sp_host_lower(struct sp_host *host, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t size = strcspn(text, ",");
        lower_one(host, text, size);
        text += size + (text[size] == ',');
    }
}
