#include "supervise/fs_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervise/observe.h"
#include "supervise/record.h"
#include "sys/guest.h"

static const struct sp_verdict allowed = {.action = SP_ALLOW, .source = ""};

static bool begins(const char *path, const char *with)
{
    return strncmp(path, with, strlen(with)) == 0;
}

static bool below(const char *path, const char *root)
{
    size_t n = strlen(root);
    if (n == 1) /* "/" */
        return true;
    return strncmp(path, root, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Nodes that hold nothing, and terminals: the run's own, or the one it was started on. */
static bool harmless_node(const char *path)
{
    static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                        "/dev/random", "/dev/urandom", "/dev/tty",
                                        "/dev/ptmx",   "/dev/pts"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (strcmp(path, nodes[i]) == 0)
            return true;
    return begins(path, "/dev/pts/");
}

bool sp_fs_own(const struct sp_supervisor *s, const char *path)
{
    for (size_t i = 0; i < s->is->own.count; i++)
        if (below(path, s->is->own.paths[i]))
            return true;
    return false;
}

bool sp_fs_holds_own(const struct sp_supervisor *s, const char *folder)
{
    if (strcmp(folder, "/") == 0) /* what has no path; the root is not moved */
        return false;
    for (size_t i = 0; i < s->is->own.count; i++)
        if (below(s->is->own.paths[i], folder))
            return true;
    return false;
}

bool sp_fs_hidden(const struct sp_supervisor *s, const char *path)
{
    const char *hidden = s->is->hidden.path;
    return hidden != NULL && below(path, hidden);
}

bool sp_fs_hidden_object(const struct sp_supervisor *s, int object)
{
    const struct sp_hidden *hidden = &s->is->hidden;
    struct stat st;
    if (hidden->path == NULL)
        return false;
    return fstat(object, &st) != 0 ||
           (st.st_dev == hidden->device && st.st_ino == hidden->inode);
}

bool sp_fs_reads_bound(const struct sp_supervisor *s)
{
    return s->is->hidden.path != NULL || (s->is->reads_judged && s->observed == NULL);
}

/* The stub and the agents, which every interpreter of the run loads. */
static bool of_agents(const struct sp_supervisor *s, const char *path)
{
    const struct sp_ring_config *config = s->is->config;
    return below(path, (const char *)config + config->agents_offset);
}

/* As it is judged: with the run's own processes called as they call themselves. */
static const char *plain(struct sp_act_call *call, const char *path, char to[PATH_MAX])
{
    char folder[SP_GUEST_PROC_MAX];
    const char *rest;
    if (begins(path, "/proc/") &&
        sp_guest_proc_path((pid_t)call->n->pid, path, folder, &rest)) {
        snprintf(to, PATH_MAX, "/proc/self%s%.*s", rest[0] != '\0' ? "/" : "",
                 PATH_MAX - 16, rest);
        return to;
    }
    return path;
}

struct sp_verdict sp_fs_verdict(struct sp_act_call *call, enum sp_list list,
                                const char *path)
{
    const struct sp_supervisor *s = call->s;
    char buffer[PATH_MAX];
    /* Pipes, sockets, memory files: they have no place in the tree. */
    if (path[0] != '/' || harmless_node(path))
        return allowed;
    path = plain(call, path, buffer);
    /* What a process may set about itself is told apart elsewhere (broker.c). */
    if (list == SP_LIST_WRITE && begins(path, "/proc/self/"))
        return allowed;
    if (list == SP_LIST_READ && of_agents(s, path))
        return allowed;
    return sp_policy_path(s->policy, list, path);
}

/* What every policy lets programs have: shared memory of their own. `object`: what it is about, where
 * that is open (its name may have become another's); -1: what the path names. */
static bool memory_may(const struct sp_act_call *call, enum sp_list list,
                       const char *operation, const char *path, int object)
{
    const struct sp_shared_memory *memory = &call->s->shared_memory;
    struct stat st;
    if (!sp_shared_memory_use(operation) || !sp_shared_memory_named(path) ||
        sp_policy_memory(call->s->policy, list, path).action != SP_ALLOW)
        return false;
    if (object >= 0)
        return fstat(object, &st) == 0 && sp_shared_memory_has(memory, &st);
    return sp_shared_memory_own(memory, operation, path);
}

static bool path_unknown(const struct sp_supervisor *s, char to[PATH_MAX])
{
    snprintf(to, PATH_MAX, "/");
    return s->observed != NULL || !(s->is->reads_judged || s->is->writes_judged);
}

bool sp_fs_path_of(const struct sp_supervisor *s, int fd, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return sp_guest_link_path(name, to) || path_unknown(s, to);
}

bool sp_fs_path_in(const struct sp_supervisor *s, int folder, const char *name,
                   char to[PATH_MAX])
{
    size_t length = strcspn(name, "/");
    if (!sp_fs_path_of(s, folder, to))
        return false;
    size_t size = strlen(to);
    if (size + length + 2 > PATH_MAX)
        return path_unknown(s, to);
    if (size > 1)
        to[size++] = '/';
    memcpy(to + size, name, length);
    to[size + length] = '\0';
    return true;
}

static bool opens(const struct sp_act_call *call)
{
    int nr = call->n->data.nr;
#ifdef SYS_open
    if (nr == SYS_open || nr == SYS_creat)
        return true;
#endif
    return nr == SYS_openat;
}

/* A folder is opened, to be listed. */
static bool lists(const struct sp_act_call *call)
{
    int flags =
        call->n->data.nr == SYS_openat ? sp_act_int(call, 2) : sp_act_int(call, 1);
    return opens(call) && (flags & O_DIRECTORY) != 0;
}

/* Modules are looked for in every folder of sys.path, and kept compiled beside their source, as
 * far as that goes. Who asks is the guest's word: it makes a refusal less of an event, not less of
 * a refusal. */
static bool by_importer(struct sp_act_call *call, const char *path)
{
    const char *name = strrchr(path, '/');
    bool cache = strstr(path, "/__pycache__/") != NULL ||
                 (name != NULL && strcmp(name, "/__pycache__") == 0);
    return (cache || lists(call)) && sp_place_importer(call);
}

/* The act's own event: it was refused, and nobody minds. */
static void record_expected(struct sp_act_call *call, const char *operation,
                            const char *path, const struct sp_place *place,
                            struct sp_buffer *members)
{
    call->denied = true;
    sp_member_text(members, "op", operation);
    sp_member_text(members, "path", path);
    sp_member_int(members, "errno", EACCES);
    sp_place_members(place, members);
    sp_buffer_text(members, ",\"expected\":true");
    sp_record_act(call, opens(call) ? SP_KIND_OPEN : SP_KIND_FILE, members);
}

/* A loader's search, before the record begins: it may do without. */
static void record_early(struct sp_act_call *call, const char *operation,
                         const char *path)
{
    struct sp_place nowhere = {.native = true};
    sp_auto_buffer members;
    sp_buffer_init(&members, 64u << 10);
    snprintf(call->s->withheld, sizeof call->s->withheld, "%s", path);
    record_expected(call, operation, path, &nowhere, &members);
}

static void record(struct sp_act_call *call, const char *operation, const char *path,
                   const struct sp_verdict *verdict)
{
    struct sp_place place;
    struct sp_buffer members;
    const char *name = call->asked != NULL ? strrchr(call->asked, '/') : NULL;
    if (call->s->phase < SP_PHASE_RUNNING && sp_observes(call, verdict))
        return;
    if (call->s->phase < SP_PHASE_RUNNING) {
        record_early(call, operation, path);
        return;
    }
    sp_buffer_init(&members, 64u << 10);
    bool importer = by_importer(call, path);
    if (importer && sp_observes(call, verdict))
        return;
    sp_place_find(call, opens(call) ? SP_ACT_OPEN : SP_ACT_FILE,
                  name != NULL ? name : call->asked, &place, NULL);
    if (importer) {
        record_expected(call, operation, path, &place, &members);
        sp_place_release(&place);
        sp_buffer_release(&members);
        return;
    }
    sp_member_text(&members, "path", path);
    struct sp_denial denial = {.category = "fs",
                               .operation = operation,
                               .target = path,
                               .verdict = *verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

bool sp_fs_refuses(struct sp_act_call *call, const char *operation, const char *path,
                   const struct sp_verdict *verdict, struct sp_answer *ret_answer)
{
    if (verdict->action == SP_ALLOW)
        return false;
    record(call, operation, path, verdict);
    *ret_answer = SP_REFUSE(EACCES);
    return true;
}

bool sp_fs_object_refused(struct sp_act_call *call, enum sp_list list,
                          const char *operation, const char *path, int object,
                          struct sp_answer *ret_answer)
{
    const struct sp_supervision *is = call->s->is;
    if (list == SP_LIST_WRITE ? sp_fs_own(call->s, path)
                              : sp_fs_hidden(call->s, path)) {
        *ret_answer = sp_fs_deny(call, operation, path, EACCES);
        return true;
    }
    if (list == SP_LIST_WRITE ? !is->writes_judged : !is->reads_judged)
        return false;
    struct sp_verdict v = sp_fs_verdict(call, list, path);
    if (v.action == SP_DENY && memory_may(call, list, operation, path, object))
        return false;
    return sp_fs_refuses(call, operation, path, &v, ret_answer);
}

bool sp_fs_refused(struct sp_act_call *call, enum sp_list list, const char *operation,
                   const char *path, struct sp_answer *ret_answer)
{
    return sp_fs_object_refused(call, list, operation, path, -1, ret_answer);
}

struct sp_answer sp_fs_deny(struct sp_act_call *call, const char *operation,
                            const char *path, int err)
{
    struct sp_verdict always = sp_verdict_always(call->s->policy);
    record(call, operation, path, &always);
    return SP_REFUSE(err);
}

static bool granted(const struct sp_supervisor *s, enum sp_list list, const char *path,
                    bool as_name)
{
    bool writes = list == SP_LIST_WRITE;
    const struct sp_granted *all = writes ? &s->is->writable : &s->is->readable;
    for (size_t i = 0; i < all->count && i < SP_GRANTED_MAX; i++)
        if (!s->grant_gone[writes][i] && below(path, all->paths[i]) &&
            !(as_name && strcmp(path, all->paths[i]) == 0))
            return true;
    return false;
}

struct sp_answer sp_fs_unseen(const struct sp_supervisor *s)
{
    bool judged = s->is->reads_judged || s->is->writes_judged;
    return judged && !s->is->writes_guarded ? SP_REFUSE(EACCES) : SP_CONTINUE;
}

bool sp_fs_kernel_decides(const struct sp_supervisor *s, enum sp_list list,
                          const char *path)
{
    return granted(s, list, path, false);
}

bool sp_fs_kernel_names(const struct sp_supervisor *s, enum sp_list list,
                        const char *path)
{
    return granted(s, list, path, true);
}

void sp_fs_moved(struct sp_supervisor *s, const char *path)
{
    const struct sp_granted *const all[] = {&s->is->readable, &s->is->writable};
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < all[list]->count && i < SP_GRANTED_MAX; i++)
            if (below(all[list]->paths[i], path))
                s->grant_gone[list][i] = s->grants_moved = true;
}
