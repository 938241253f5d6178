#include "supervise/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/record.h"
#include "sys/guest.h"
#include "sys/program_file.h"

#define CHAIN_MAX 5 /* scripts that interpret scripts: as many as the kernel follows */

static bool link_of(int fd, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, to, PATH_MAX - 1);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int open_object(struct sp_act_call *call, const struct sp_path *path)
{
    char name[60];
    if (path->asked[0] != '\0')
        return sp_path_open(call, path, 0);
    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)call->n->pid, path->dirfd);
    int fd = open(name, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* From a script to what interprets it, which may be a script again. */
static int follow_script(struct sp_act_call *call, int fd, struct sp_program *program)
{
    static struct sp_program_file file;
    sp_auto_fd current = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct stat st;
    for (int depth = 0; current >= 0 && depth <= CHAIN_MAX; depth++) {
        if (!link_of(current, program->image) || fstat(current, &st) != 0)
            return -EACCES;
        program->device = st.st_dev;
        program->inode = st.st_ino;
        sp_program_file_read(current, &file);
        if (file.kind != SP_PROGRAM_TEXT)
            return 0;
        program->script = true;
        int next = sp_guest_open_path((pid_t)call->n->pid, AT_FDCWD, file.by, 0);
        if (next < 0)
            return next;
        close(current);
        current = next;
    }
    return current < 0 ? -EMFILE : -ELOOP;
}

int sp_program_find(struct sp_act_call *call, const struct sp_path *path,
                    struct sp_program *ret_program)
{
    struct stat st;
    struct sp_program *program = ret_program;
    program->script = program->named = false;
    program->path[0] = program->image[0] = '\0';
    sp_auto_fd fd = open_object(call, path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) != 0 || !link_of(fd, program->path))
        return -EACCES;
    program->named = st.st_nlink > 0;
    int result = follow_script(call, fd, program);
    return sp_notify_valid(call) ? result : -ESRCH;
}

/* By a rule that names it, not because none does. */
static bool by_name(const struct sp_verdict *v)
{
    return strchr(v->rule, '"') != NULL;
}

static bool is_interpreter(const struct sp_supervisor *s, const char *path)
{
    for (size_t i = 0; i < s->is->interpreters.count; i++)
        if (strcmp(s->is->interpreters.paths[i], path) == 0)
            return true;
    return false;
}

/* A program without a name can be no program that a rule means. */
static struct sp_verdict judge_nameless(const struct sp_policy *policy)
{
    struct sp_verdict v = sp_policy_program(policy, "");
    if (v.action == SP_DENY)
        return v;
    v.action = SP_DENY;
    v.by_rule = true;
    snprintf(v.rule, sizeof v.rule, "process.deny");
    return v;
}

/* A program that was granted may use the shell, as system() does; whatever that starts is judged in
 * turn. The run's interpreter is no such program: Python code would have the shell by it. */
static bool shell_for_granted(const struct sp_act_call *call, const char *path)
{
    const struct sp_supervisor *s = call->s;
    char shell[PATH_MAX];
    char own[PATH_MAX];
    char exe[PATH_MAX];
    if (realpath("/bin/sh", shell) == NULL || strcmp(path, shell) != 0 ||
        !sp_guest_exe(call->process->pid, exe) || !sp_notify_valid(call))
        return false;
    if (strcmp(exe, shell) == 0) /* which it is already */
        return true;
    return realpath(s->is->launch->path, own) != NULL && strcmp(exe, own) != 0 &&
           sp_policy_program(s->policy, exe).action == SP_ALLOW;
}

struct sp_verdict sp_program_judge(const struct sp_act_call *call,
                                   const struct sp_program *program,
                                   const char **ret_target)
{
    const struct sp_supervisor *s = call->s;
    struct sp_verdict v = program->named ? sp_policy_program(s->policy, program->path)
                                         : judge_nameless(s->policy);
    *ret_target = program->path;
    /* `#!/usr/bin/env NAME`: env, which runs for an allowed script, goes on to its interpreter. */
    if (v.action == SP_DENY && !by_name(&v) && call->process->by_env &&
        is_interpreter(s, program->path))
        v.action = SP_ALLOW;
    if (v.action == SP_DENY && !by_name(&v) && shell_for_granted(call, program->path))
        v.action = SP_ALLOW;
    if (v.action == SP_DENY || !program->script)
        return v;
    struct sp_verdict by = sp_policy_program(s->policy, program->image);
    bool held = s->is->interpreters_known && !is_interpreter(s, program->image);
    if (by.action == SP_ALLOW || (!by_name(&by) && !held))
        return v;
    *ret_target = program->image;
    return by;
}

static bool ends_with(const char *path, const char *name)
{
    const char *last = strrchr(path, '/');
    return last != NULL && strcmp(last + 1, name) == 0;
}

static void record_other(struct sp_act_call *call, const char *path,
                         const struct sp_verdict *verdict)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "path", path);
    sp_place_find(call, SP_ACT_NONE, NULL, &place, NULL);
    struct sp_denial denial = {.category = "process",
                               .operation = "exec",
                               .target = path,
                               .verdict = *verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

bool sp_program_verify(struct sp_act_call *call)
{
    struct sp_process *process = call->process;
    const struct sp_pending_exec *exec = &process->exec;
    char name[40];
    char path[PATH_MAX];
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/exe", process->pid);
    bool seen = stat(name, &st) == 0;
    if (!seen && (errno == ENOENT || errno == ESRCH))
        return true; /* it is gone */
    process->by_env = false;
    if (seen && st.st_dev == exec->device && st.st_ino == exec->inode) {
        process->by_env =
            exec->script && sp_guest_exe(process->pid, path) && ends_with(path, "env");
        return true;
    }
    if (!seen || !sp_guest_exe(process->pid, path))
        snprintf(path, sizeof path, "a program that cannot be looked at");
    struct sp_verdict v = seen && st.st_nlink > 0
                              ? sp_policy_program(call->s->policy, path)
                              : judge_nameless(call->s->policy);
    if (v.action == SP_ALLOW)
        return true;
    record_other(call, path, &v);
    return false;
}
