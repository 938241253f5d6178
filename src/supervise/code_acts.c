/* Native code that comes into a process: asked about by the agent, module by module, and seen by the
 * kernel as memory that can be executed.
 *
 * libc's loader maps a library from a descriptor; what is judged is the file behind it. Another
 * thread can put a different file under that number before the kernel looks: the process is looked
 * at once more at its next call, and ended if it holds what it may not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/record.h"
#include "sys/guest.h"

static void copy_claim(const struct sp_claim *claim, enum sp_field field, char *to,
                       size_t size)
{
    size_t length = 0;
    const char *text = sp_claim_text(claim, field, &length);
    length = text == NULL ? 0 : length < size ? length : size - 1;
    if (length > 0)
        memcpy(to, text, length);
    to[length] = '\0';
}

static const char *config_text(const struct sp_supervisor *s, bool agents)
{
    const struct sp_ring_config *config = s->is->config;
    return (const char *)config +
           (agents ? config->agents_offset : config->python_offset);
}

static bool started(const struct sp_process *process)
{
    return process->lane != NULL && sp_lane_started(process->lane);
}

bool sp_import_judge(struct sp_act_call *call, const struct sp_claim *claim,
                     struct sp_denial *denial, char *target, size_t size)
{
    static char file[SP_TEXT_MAX + 1];
    char op[16];
    const struct sp_supervisor *s = call->s;
    bool direct = sp_claim_number(claim, SP_FIELD_DIRECT, 1) != 0;
    bool all = sp_policy_setting(s->policy, SP_SETTING_SCOPE) == SP_SCOPE_ALL;
    copy_claim(claim, SP_FIELD_MODULE, target, size);
    copy_claim(claim, SP_FIELD_LIBRARY, file, sizeof file);
    copy_claim(claim, SP_FIELD_OP, op, sizeof op);
    denial->category = "import";
    denial->operation = "import";
    /* What the run itself was asked to start. */
    if (strcmp(op, "program") == 0 && call->process->program &&
        !call->process->replaced)
        return false;
    if (file[0] == '\0') {
        denial->verdict = sp_policy_import(s->policy, target, direct);
        return denial->verdict.action == SP_DENY;
    }
    denial->verdict =
        sp_policy_native(s->policy, sp_code_file_of(file, config_text(s, false)),
                         started(call->process));
    denial->verdict.expected = !direct && !all;
    return denial->verdict.action == SP_DENY;
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Other programs bring libraries of their own: beside them, or in PREFIX/lib of PREFIX/bin. */
static bool of_program(const struct sp_process *process, const char *path)
{
    char exe[PATH_MAX];
    if (process->lane != NULL || !sp_guest_exe(process->pid, exe))
        return false;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(exe, '/');
        if (slash == NULL || slash == exe)
            return false;
        *slash = '\0';
        if (i == 0 && below(path, exe))
            return true;
    }
    return below(path, exe) && strncmp(path + strlen(exe), "/lib", 4) == 0;
}

/* What the run made itself is nobody's library. */
static enum sp_code_file file_kind(const struct sp_act_call *call, const char *path,
                                   bool named)
{
    const struct sp_supervisor *s = call->s;
    if (!named || sp_files_made(&s->files, path))
        return SP_CODE_OTHER;
    enum sp_code_file what = sp_code_file_of(path, config_text(s, false));
    if (what == SP_CODE_OTHER &&
        (below(path, config_text(s, true)) || of_program(call->process, path)))
        return SP_CODE_LIBC;
    return what;
}

static bool allowed(const struct sp_act_call *call, const char *path, bool named,
                    struct sp_verdict *ret_verdict)
{
    *ret_verdict = sp_policy_native(call->s->policy, file_kind(call, path, named),
                                    started(call->process));
    return ret_verdict->action == SP_ALLOW;
}

static struct sp_answer deny(struct sp_act_call *call, const char *target,
                             const struct sp_verdict *verdict)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 16u << 10);
    if (target[0] == '/')
        sp_member_text(&members, "library", target);
    sp_place_find(call, SP_ACT_NONE, NULL, &place, NULL);
    struct sp_denial denial = {.category = "import",
                               .operation = "load",
                               .target = target,
                               .verdict = *verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(EACCES);
}

static struct sp_answer judge_memory(struct sp_act_call *call)
{
    struct sp_verdict verdict =
        sp_policy_native(call->s->policy, SP_CODE_MEMORY, started(call->process));
    if (verdict.action == SP_ALLOW)
        return SP_CONTINUE;
    return deny(call, "code made at run time", &verdict);
}

/* Several threads can race for what a number means. */
static bool has_threads(pid_t pid)
{
    char name[40];
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/task", pid);
    return stat(name, &st) != 0 || st.st_nlink > 3;
}

static struct sp_answer judge_mapping(struct sp_act_call *call)
{
    char name[60];
    char path[PATH_MAX];
    struct stat st;
    struct sp_verdict verdict;
    pid_t tid = (pid_t)call->n->pid;
    int fd = sp_act_int(call, 4);
    if ((sp_act_arg(call, 3) & MAP_ANONYMOUS) != 0)
        return judge_memory(call);
    snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    if (stat(name, &st) != 0)
        return SP_REFUSE(errno == ENOENT ? EBADF : EACCES);
    if (!sp_guest_fd_path(tid, fd, path))
        return SP_REFUSE(EACCES);
    if (!sp_notify_valid(call))
        return SP_GONE;
    if (!allowed(call, path, st.st_nlink > 0, &verdict))
        return deny(call, path, &verdict);
    call->process->code_unsure |= has_threads(call->process->pid);
    return SP_CONTINUE;
}

/* ---- what is mapped already ----------------------------------------------------------------- */

struct mapping {
    uint64_t from;
    uint64_t to;
    bool executable;
    bool named;
    char path[PATH_MAX]; /* "": no file */
};

static bool read_mapping(FILE *maps, char **line, size_t *room, struct mapping *m)
{
    char rights[8];
    unsigned long long inode;
    int at = 0;
    if (getline(line, room, maps) <= 0 ||
        sscanf(*line, "%lx-%lx %7s %*s %*s %llu %n", &m->from, &m->to, rights, &inode,
               &at) < 4)
        return false;
    m->executable = strchr(rights, 'x') != NULL;
    m->path[0] = '\0';
    m->named = true;
    if (at == 0 || inode == 0)
        return true;
    char *text = *line + at;
    text[strcspn(text, "\n")] = '\0';
    size_t size = strlen(text);
    static const char gone[] = " (deleted)";
    if (size >= sizeof gone && strcmp(text + size - (sizeof gone - 1), gone) == 0)
        m->named = false;
    snprintf(m->path, sizeof m->path, "%s", text);
    return true;
}

/* The first mapping in the range that may not be executed; `all`: that is not executable yet too.
 * false: there is none. */
static bool find_denied(struct sp_act_call *call, uint64_t from, uint64_t to, bool all,
                        struct mapping *ret_mapping, struct sp_verdict *ret_verdict)
{
    char name[40];
    char exe[PATH_MAX];
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    if (!sp_guest_exe(call->process->pid, exe))
        exe[0] = '\0';
    snprintf(name, sizeof name, "/proc/%d/maps", call->process->pid);
    FILE *maps = fopen(name, "re");
    while (maps != NULL && !found && read_mapping(maps, &line, &room, ret_mapping)) {
        const struct mapping *m = ret_mapping;
        bool meant = m->from < to && m->to > from && (all || m->executable);
        if (!meant || (m->path[0] == '\0' && !all))
            continue;
        if (m->path[0] != '\0') {
            found = strcmp(m->path, exe) != 0 &&
                    !allowed(call, m->path, m->named, ret_verdict);
            continue;
        }
        *ret_verdict =
            sp_policy_native(call->s->policy, SP_CODE_MEMORY, started(call->process));
        found = ret_verdict->action == SP_DENY;
    }
    free(line);
    if (maps != NULL)
        fclose(maps);
    return found;
}

static struct sp_answer judge_protection(struct sp_act_call *call)
{
    static struct mapping mapping;
    struct sp_verdict verdict;
    uint64_t from = sp_act_arg(call, 0);
    if (find_denied(call, from, from + sp_act_arg(call, 1), true, &mapping, &verdict))
        return deny(call,
                    mapping.path[0] != '\0' ? mapping.path : "code made at run time",
                    &verdict);
    return SP_CONTINUE;
}

struct sp_answer sp_act_code(struct sp_act_call *call)
{
    /* The interpreter of the run itself is being loaded; nothing of the guest's has run. */
    if (call->s->phase < SP_PHASE_RUNNING)
        return SP_CONTINUE;
    if (sp_policy_setting(call->s->policy, SP_SETTING_NATIVE) == SP_NATIVE_ALLOW)
        return SP_CONTINUE;
    return call->n->data.nr == SYS_mmap ? judge_mapping(call) : judge_protection(call);
}

bool sp_code_verify(struct sp_act_call *call)
{
    static struct mapping mapping;
    struct sp_verdict verdict;
    if (!call->process->code_unsure)
        return true;
    call->process->code_unsure = false;
    if (!find_denied(call, 0, UINT64_MAX, false, &mapping, &verdict))
        return true;
    (void)deny(call, mapping.path, &verdict);
    return false;
}
