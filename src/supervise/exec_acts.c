/* Processes becoming other programs, and ending. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scope.h"
#include "supervise/paths.h"
#include "supervise/record.h"
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

static void note_pending(struct sp_act_call *call, const char *path, uint64_t argv,
                         bool found)
{
    struct sp_pending_exec *exec = &call->process->exec;
    struct sp_place place = {0};
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
    sp_record_denial(call, &denial, &place, NULL);
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

struct sp_answer sp_act_exec(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    static struct sp_path path;
    bool at = call->n->data.nr == SYS_execveat;
    if (s->phase == SP_PHASE_SEALED && call->process->program) {
        s->phase = SP_PHASE_LOADING; /* our own exec of the interpreter */
        return SP_CONTINUE;
    }
    if (call->process->lane != NULL)
        sp_lane_drain(call->process->lane, s->writer, 0);
    int result = sp_path_read(call, at ? sp_act_int(call, 0) : AT_FDCWD,
                              sp_act_arg(call, at ? 1 : 0), true, &path);
    if (result != 0)
        return sp_act_unreadable(call, -result);
    bool found = has_no_name(&path) || access(path.text, R_OK) == 0;
    if (!found && errno == EACCES && access(path.text, X_OK) == 0)
        return deny_unreadable(call, path.text);
    /* One that is not there may be by the time that the kernel looks. */
    note_pending(call, path.text, sp_act_arg(call, at ? 2 : 1), found);
    return SP_CONTINUE;
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

void sp_exec_check(struct sp_supervisor *s, struct sp_process *process)
{
    if (!process->exec.waiting)
        return;
    /* By the mark alone where the memory is a vfork's: it is the same for one image after
     * another where addresses are not random. 0: it was readable, and is not any more. */
    bool gone = sp_guest_memory_gone(process->exec.memory);
    sp_close_fd(&process->exec.memory);
    if (gone || sp_guest_image(process->pid) != process->exec.mark)
        sp_exec_confirm(s, process, false);
    else
        process->exec.waiting = false; /* it failed: the same image goes on */
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
        sp_record_denial(&call, &denial, &place, NULL);
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
