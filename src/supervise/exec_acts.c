/* Processes becoming other programs, and ending. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scope.h"
#include "supervise/fs_judge.h"
#include "supervise/keyed.h"
#include "supervise/program.h"
#include "supervise/record.h"
#include "supervise/shrugged.h"
#include "sys/guest.h"

#define ARGV_MAX   256u
#define ARGV_BYTES 8192u

/* argv as a JSON array, as it stands in the guest now: evidence, not proof, when threads race. */
static void argv_members(pid_t tid, uint64_t address, struct sp_buffer *members)
{
    char text[1024];
    size_t bytes = 0;
    unsigned count = 0;
    bool cut = false;
    sp_buffer_text(members, ",\"argv\":[");
    for (; address != 0; count++) {
        uint64_t pointer;
        if (sp_guest_read(tid, address + count * sizeof pointer, &pointer,
                          sizeof pointer) != 0 ||
            pointer == 0)
            break;
        ssize_t n = sp_guest_text(tid, pointer, text, sizeof text);
        cut = n == -ENAMETOOLONG;
        size_t length = cut ? sizeof text - 1 : n > 0 ? (size_t)n : 0;
        sp_buffer_text(members, count > 0 ? "," : "");
        sp_json_string(members, text, length);
        bytes += length;
        if (count + 1 == ARGV_MAX || bytes > ARGV_BYTES) {
            cut = true;
            break;
        }
    }
    sp_buffer_text(members, cut ? "],\"argv_cut\":true" : "]");
}

/* `program` NULL: it is not judged. */
static void note_pending(struct sp_act_call *call, const char *path, uint64_t argv,
                         bool found, const struct sp_program *program)
{
    struct sp_pending_exec *exec = &call->process->exec;
    struct sp_place place = {0};
    exec->unsure |=
        (exec->waiting || exec->guarded) && exec->tid != (pid_t)call->n->pid;
    exec->tid = (pid_t)call->n->pid;
    if (program != NULL) {
        exec->guarded = true;
        exec->script = program->script;
        exec->device = program->device;
        exec->inode = program->inode;
    }
    if (found) /* the announcement is kept for the next folder on PATH */
        sp_place_find(call, SP_ACT_PROCESS, NULL, &place, NULL);
    sp_buffer_clear(&exec->members);
    sp_member_text(&exec->members, "path", path);
    argv_members((pid_t)call->n->pid, argv, &exec->members);
    sp_member_text(&exec->members, "args", "observed");
    sp_place_members(&place, &exec->members);
    sp_place_release(&place);
    exec->mark = sp_guest_image(call->process->pid);
    sp_close_fd(&exec->memory);
    exec->memory = sp_guest_memory(call->process->pid);
    exec->t_ns = sp_supervisor_t(call->s);
    exec->waiting = true;
}

/* A program that its user may not read runs in a process that nobody may look into. */
static struct sp_answer deny_unreadable(struct sp_act_call *call, const char *path)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "path", path);
    sp_place_find(call, SP_ACT_PROCESS, NULL, &place, NULL);
    struct sp_denial denial = {.category = "integrity",
                               .operation = "exec",
                               .target = path,
                               .verdict = sp_verdict_always(call->s->policy),
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(EACCES);
}

/* The descriptor itself (AT_EMPTY_PATH, a memory file for example) and what is reached through
 * procfs need no name that leads there from here. */
static bool has_no_name(const struct sp_path *path)
{
    return path->asked[0] == '\0' || strncmp(path->text, "/proc/", 6) == 0;
}

static uint64_t hash_text(const char *text)
{
    return sp_keyed_hash(text, strlen(text));
}

/* A search along PATH goes on after a denial, and meets one folder by several names, or twice by one,
 * before the new process is anything: one attempt. */
static bool is_search(const struct sp_act_call *call, const struct sp_path *path)
{
    struct sp_process *process = call->process;
    const char *slash = strrchr(path->asked, '/');
    uint64_t asked = hash_text(path->asked);
    uint64_t name = hash_text(slash != NULL ? slash + 1 : path->asked);
    if (process->denied_exec.tid == (pid_t)call->n->pid &&
        process->denied_exec.name == name &&
        (process->denied_exec.asked != asked || process->lane == NULL))
        return true;
    process->denied_exec.tid = (pid_t)call->n->pid;
    process->denied_exec.name = name;
    process->denied_exec.asked = asked;
    return false;
}

static struct sp_answer deny_program(struct sp_act_call *call,
                                     const struct sp_path *path, uint64_t argv,
                                     const char *target,
                                     const struct sp_verdict *verdict)
{
    struct sp_place place;
    struct sp_buffer members;
    if (!call->observing && is_search(call, path)) {
        call->denied = true;
        call->again = true;
        return SP_REFUSE(EACCES);
    }
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "path", path->text);
    argv_members((pid_t)call->n->pid, argv, &members);
    sp_place_find(call, SP_ACT_PROCESS, NULL, &place, NULL);
    struct sp_denial denial = {.category = "process",
                               .operation = "exec",
                               .target = target,
                               .verdict = *verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    denial.verdict.expected =
        denial.verdict.expected || sp_shrugged(call->s, "exec", path->asked, &place);
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(EACCES);
}

/* There is no object, or none that could be looked at from outside: what the kernel would say. A
 * walk that only the guest itself can make (a link into procfs) leads to nothing that is allowed. */
static struct sp_answer deny_unknown(struct sp_act_call *call,
                                     const struct sp_path *path, uint64_t argv, int err)
{
    char name[NAME_MAX + 2];
    char link[40];
    if (err != EACCES)
        return SP_REFUSE(err);
    sp_auto_fd folder = sp_path_open_folder(call, path, name);
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    if (!has_no_name(path) && (folder < 0 || access(link, X_OK) != 0))
        return SP_REFUSE(err);
    struct sp_verdict verdict = sp_policy_program(call->s->policy, "");
    if (verdict.action == SP_ALLOW) {
        verdict.action = SP_DENY;
        verdict.by_rule = true;
        snprintf(verdict.rule, sizeof verdict.rule, "process.deny");
    }
    return deny_program(call, path, argv, path->text, &verdict);
}

/* Whether the kernel, which reads a program itself, may under the guest's domain. It may not where
 * something beside the file is denied: no domain tells them apart. */
static bool kernel_reads(const struct sp_supervisor *s, const char *path)
{
    bool bound = s->is->writes_guarded && sp_fs_reads_bound(s);
    return !bound || path[0] != '/' || sp_fs_kernel_decides(s, SP_LIST_READ, path);
}

/* Whether the file of a program can be one that may not be read. */
static bool reads_matter(const struct sp_supervisor *s)
{
    return s->is->reads_judged || sp_fs_reads_bound(s);
}

static struct sp_verdict judge_reading(struct sp_act_call *call, const char *path)
{
    struct sp_verdict v = sp_fs_verdict(call, SP_LIST_READ, path);
    return v.action == SP_DENY || kernel_reads(call->s, path)
               ? v
               : sp_policy_unread_program(call->s->policy);
}

/* By the lists of programs, and by those of reading: a program is read to be started. */
static struct sp_verdict judge(struct sp_act_call *call,
                               const struct sp_program *program,
                               const char **ret_target)
{
    struct sp_verdict v = {.action = SP_ALLOW};
    if (sp_policy_restricts(call->s->policy, SP_LIST_PROCESS))
        v = sp_program_judge(call, program, ret_target);
    if (v.action == SP_DENY || !reads_matter(call->s) || !program->named)
        return v;
    *ret_target = program->path;
    v = judge_reading(call, program->path);
    if (v.action == SP_DENY || !program->script)
        return v;
    *ret_target = program->image;
    return judge_reading(call, program->image);
}

struct sp_answer sp_act_exec(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    static struct sp_path path;
    static struct sp_program program;
    bool at = call->n->data.nr == SYS_execveat;
    uint64_t argv = sp_act_arg(call, at ? 2 : 1);
    if (s->phase == SP_PHASE_SEALED && call->process->program) {
        s->phase = SP_PHASE_LOADING; /* our own exec of the interpreter */
        return SP_CONTINUE;
    }
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, s->writer, 0);
    int result = sp_path_read(call, at ? sp_act_int(call, 0) : AT_FDCWD,
                              sp_act_arg(call, at ? 1 : 0), SP_LAST_FOLLOWED, &path);
    if (result != 0)
        return sp_act_unreadable(call, -result);
    bool restricted = sp_policy_restricts(s->policy, SP_LIST_PROCESS);
    if (restricted || reads_matter(s))
        result = sp_program_find(call, &path, &program);
    if (restricted && result != 0)
        return deny_unknown(call, &path, argv, -result);
    if (result == 0 && (restricted || reads_matter(s))) {
        const char *target;
        struct sp_verdict verdict = judge(call, &program, &target);
        if (verdict.action == SP_DENY)
            return deny_program(call, &path, argv, target, &verdict);
    }
    bool found = has_no_name(&path) || access(path.text, R_OK) == 0;
    if (!found && errno == EACCES && access(path.text, X_OK) == 0)
        return deny_unreadable(call, path.text);
    /* One that is not there may be by the time that the kernel looks. */
    note_pending(call, path.text, argv, found, restricted ? &program : NULL);
    return SP_CONTINUE;
}

bool sp_exec_judge(struct sp_act_call *call, const char *asked,
                   struct sp_denial *denial, char *target, size_t size)
{
    static struct sp_path path;
    static struct sp_program program;
    const struct sp_policy *policy = call->s->policy;
    const char *object;
    denial->category = "process";
    denial->operation = "fork";
    denial->verdict = sp_policy_fork(policy);
    snprintf(target, size, "a new process for '%s'", asked);
    if (denial->verdict.action == SP_DENY)
        return true;
    path.dirfd = AT_FDCWD;
    snprintf(path.asked, sizeof path.asked, "%s", asked);
    if (!sp_policy_restricts(policy, SP_LIST_PROCESS) ||
        sp_program_find(call, &path, &program) != 0)
        return false;
    denial->operation = "exec";
    denial->verdict = sp_program_judge(call, &program, &object);
    snprintf(target, size, "%s", object);
    return denial->verdict.action == SP_DENY;
}

void sp_exec_confirm(struct sp_supervisor *s, struct sp_process *process, bool agent)
{
    struct sp_pending_exec *exec = &process->exec;
    if (!exec->waiting)
        return;
    exec->waiting = false;
    sp_close_fd(&exec->memory);
    s->replaced |= process->program;
    process->replaced = true;
    if (process->lane != NULL) {
        sp_lane_finish(process->lane, s->writer);
        sp_lane_free(process->lane);
        process->lane = NULL;
    }
    sp_trace_begin(s->writer, SP_KIND_EXEC, SP_LAYER_KERNEL, exec->t_ns, process->pid,
                   process->pid);
    sp_trace_members(s->writer, exec->members.data, exec->members.size);
    sp_trace_bool(s->writer, "agent", agent);
    sp_trace_end(s->writer);
}

/* By the mark alone where the memory is a vfork's: it is the same for one image after another where
 * addresses are not random. 0: it was readable, and is not any more. */
static bool image_changed(const struct sp_process *process)
{
    return sp_guest_memory_gone(process->exec.memory) ||
           sp_guest_image(process->pid) != process->exec.mark;
}

void sp_exec_look(struct sp_supervisor *s, struct sp_process *process)
{
    if (process->exec.waiting && image_changed(process))
        sp_exec_confirm(s, process, false);
}

bool sp_exec_settle(struct sp_act_call *call)
{
    struct sp_process *process = call->process;
    struct sp_pending_exec *exec = &process->exec;
    bool agents = call->n->data.nr == SP_CALL_NR;
    bool hello = agents && sp_act_arg(call, 0) == SP_CALL_HELLO;
    if ((!exec->waiting && !exec->guarded) || (agents && !hello))
        return true;
    bool changed = image_changed(process);
    bool right = !exec->guarded || !(changed || hello) || sp_program_verify(call);
    /* Who asked for it is back in the same image: it failed. Any other thread says nothing. */
    bool over = changed || (exec->tid == (pid_t)call->n->pid && !exec->unsure);
    if (over)
        exec->guarded = exec->unsure = false;
    /* hello() tells of it; a program that is still being loaded may yet say hello. */
    bool loading = sp_is_code_call(call->n->data.nr) || sp_open_of_loader(call);
    if (!over || ((hello || loading) && right))
        return right;
    if (changed || !right)
        sp_exec_confirm(call->s, process, false);
    exec->waiting = false;
    sp_close_fd(&exec->memory);
    return right;
}

static void tell_exit(struct sp_supervisor *s, struct sp_process *process, int tid,
                      int code, int signal)
{
    sp_trace_begin(s->writer, SP_KIND_EXIT, SP_LAYER_KERNEL, sp_supervisor_t(s),
                   process->pid, tid);
    if (signal != 0)
        sp_trace_int(s->writer, "signal", signal);
    else if (code >= 0)
        sp_trace_int(s->writer, "code", code);
    else
        sp_trace_string(s->writer, "code", "unknown");
    sp_trace_end(s->writer);
    process->exited = true;
}

/* A lookup that never came to its end is told as what it was. */
static void flush_lookups(struct sp_supervisor *s, pid_t pid)
{
    for (unsigned i = 0; i < SP_LOOKUPS_MAX; i++) {
        struct sp_lookup *lookup = &s->lookups.items[i];
        if (lookup->tid == 0 || lookup->pid != pid)
            continue;
        struct sp_process process = {.pid = pid};
        struct seccomp_notif n = {.pid = (uint32_t)lookup->tid};
        struct sp_act_call call = {.s = s, .n = &n, .process = &process};
        struct sp_place place = {0};
        struct sp_denial denial = {.category = "network",
                                   .operation = "resolve",
                                   .target = lookup->tried ? lookup->address : "a name",
                                   .verdict = sp_policy_network(s->policy),
                                   .layer = SP_LAYER_KERNEL};
        sp_record_denial(&call, &denial, &place);
        sp_lookup_end(lookup);
    }
}

/* By the agent's word: whether the interpreter was finalised, and on whose demand. */
static void note_way_out(struct sp_supervisor *s, const struct sp_process *process)
{
    if (s->replaced) {
        s->exited_by = "exec";
        return;
    }
    if (process->lane == NULL)
        return;
    switch (sp_lane_ended(process->lane)) {
    case SP_ENDED_FINALIZED:
        s->exited_by = "end";
        break;
    case SP_ENDED_SYSTEM_EXIT:
        s->exited_by = "SystemExit";
        break;
    default:
        s->exited_by = "os._exit";
    }
}

void sp_process_ended(struct sp_supervisor *s, struct sp_process *process, int code,
                      int signal)
{
    flush_lookups(s, process->pid);
    /* Nothing was heard of it since: it is taken for the program that it asked for. */
    sp_exec_confirm(s, process, false);
    if (process->lane != NULL) {
        sp_lane_finish(process->lane, s->writer);
        sp_lane_free(process->lane);
        process->lane = NULL;
    }
    if (!process->exited && s->phase >= SP_PHASE_RUNNING)
        tell_exit(s, process, process->pid, code, signal);
}

struct sp_answer sp_act_exit(struct sp_act_call *call)
{
    struct sp_process *process = call->process;
    sp_limits_exiting(call->s, process->pid);
    if (call->s->phase < SP_PHASE_RUNNING)
        return SP_CONTINUE;
    flush_lookups(call->s, process->pid);
    if (process->program)
        note_way_out(call->s, process);
    if (process->lane != NULL)
        sp_lane_finish(process->lane, call->s->writer);
    if (!process->exited)
        tell_exit(call->s, process, (int)call->n->pid, sp_act_int(call, 0) & 0xff, 0);
    return SP_CONTINUE;
}
