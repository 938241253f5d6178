#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/scope.h"
#include "plan/launcher.h"
#include "ring/names.h"
#include "run/agents_path.h"
#include "run/config.h"
#include "run/keeper.h"
#include "run/private_folder.h"
#include "run/start_record.h"
#include "sys/privileges.h"
#include "sys/real_path.h"
#include "trace/packing.h"
#include "trace/writer.h"

/* From 124 on, exit codes say that a limit or the caller ended the run. */
#define ENDED 124

/* What removing the private folder may take of the caller's time; a process of its own goes on
 * with what is left. */
#define PATIENCE_MIN_NS UINT64_C(100000000)
#define PATIENCE_MAX_NS UINT64_C(30000000000)

/* What is inherited and must be the same in the guest. */
struct inherited {
    sigset_t mask;
    mode_t file_mask;
    bool pipe_ignored;
    bool child_ignored;
    bool size_ignored;
};

/* A standard stream that is closed stays closed for the guest; for us its number is taken, so
 * that nothing we open lands there. */
static void secure_stdio(struct sp_run *run)
{
    for (int i = 0; i < 3; i++) {
        run->stdio_open[i] = fcntl(i, F_GETFD) >= 0;
        run->stdio[i] = run->stdio_open[i] ? i : -1;
        if (!run->stdio_open[i] && open("/dev/null", i == 0 ? O_RDONLY : O_WRONLY) != i)
            _exit(125);
    }
}

static bool was_ignored(int signal)
{
    struct sigaction old;
    return sigaction(signal, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

static void take_signals(struct inherited *ret_inherited, sigset_t *ret_set)
{
    ret_inherited->pipe_ignored = was_ignored(SIGPIPE);
    ret_inherited->child_ignored = was_ignored(SIGCHLD);
    ret_inherited->size_ignored = was_ignored(SIGXFSZ);
    sp_keeper_signals(ret_set);
    sigprocmask(SIG_BLOCK, ret_set, &ret_inherited->mask);
    signal(SIGPIPE, SIG_IGN);
    /* A limit on file sizes fails a write, as a full disk does. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* "3.9, 3.11, 3.13": the versions that there are agents for. */
static void list_agents(const char *folder, char *to, size_t size)
{
    glob_t found;
    char pattern[PATH_MAX + 64];
    size_t n = 0;
    snprintf(pattern, sizeof pattern, "%s/sandpit-agent-*.so", folder);
    to[0] = '\0';
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_version);
    for (size_t i = 0; i < found.gl_pathc && n < size; i++) {
        const char *version =
            strrchr(found.gl_pathv[i], '/') + sizeof "/sandpit-agent-" - 1;
        n += (size_t)snprintf(to + n, size - n, "%s%.*s", i > 0 ? ", " : "",
                              (int)strlen(version) - 3, version);
    }
    globfree(&found);
}

/* An interpreter without an agent is refused before anything of it runs. One whose name does
 * not say its version is found out when its agent does not report in. */
static int check_agent(const struct sp_run *run, const char *agents,
                       struct sp_error *reterr)
{
    char path[PATH_MAX + 64];
    const char *version = run->interpreter.version;
    snprintf(path, sizeof path, "%s/sandpit-agent-%s.so", agents, version);
    if (version[0] == '\0' || !run->plan.needs_agent || access(path, R_OK) == 0)
        return 0;
    char known[128];
    list_agents(agents, known, sizeof known);
    (void)sp_fail(reterr, SP_E_HOST,
                  "there is no agent for Python %s ('%.200s'), only for %s (to run "
                  "without one: --allow-degraded agent)",
                  version, run->interpreter.path, known[0] != '\0' ? known : "none");
    return sp_error_what(reterr, sp_ability_name(SP_ABILITY_AGENT));
}

static int spare_key(const struct sp_run *run, struct sp_error *reterr)
{
    struct stat old;
    if (run->signer.page == NULL ||
        fstatat(run->trace.folder, run->trace.name, &old, AT_SYMLINK_NOFOLLOW) != 0 ||
        old.st_dev != run->signer.place.device || old.st_ino != run->signer.place.inode)
        return 0;
    return sp_fail(reterr, SP_E_TRACE,
                   "cannot write the trace '%.200s': it is the key that signs it",
                   run->request->trace);
}

/* A trace may replace an older file, but not what it is the trace of, nor what signs it. */
static int spare_script(const struct sp_run *run, struct sp_error *reterr)
{
    const struct sp_run_request *rq = run->request;
    struct stat old;
    struct stat script;
    bool same = false;
    if (rq->kind == SP_PROGRAM_SCRIPT && run->trace.fd >= 0 &&
        fstatat(run->trace.folder, run->trace.name, &old, AT_SYMLINK_NOFOLLOW) == 0)
        for (int flags = 0; flags <= AT_SYMLINK_NOFOLLOW; flags += AT_SYMLINK_NOFOLLOW)
            same |= fstatat(AT_FDCWD, rq->value, &script, flags) == 0 &&
                    script.st_dev == old.st_dev && script.st_ino == old.st_ino;
    if (!same)
        return spare_key(run, reterr);
    return sp_fail(reterr, SP_E_TRACE,
                   "cannot write the trace '%.200s': it is the script", rq->trace);
}

/* What the caller says, else the policy. */
static enum sp_calls_level calls_of(const struct sp_run *run)
{
    static const enum sp_calls_level levels[] = {
        [SP_CALLS_SETTING_FOLDED] = SP_CALLS_FOLDED,
        [SP_CALLS_SETTING_OFF] = SP_CALLS_OFF,
        [SP_CALLS_SETTING_FIRST] = SP_CALLS_FIRST,
        [SP_CALLS_SETTING_ALL] = SP_CALLS_ALL};
    return run->request->calls_given
               ? run->request->calls
               : levels[sp_policy_setting(run->written, SP_SETTING_CALLS)];
}

/* Where the program's own files lie: its folder, or the package that -m names in the folder of
 * the run. false: it has none. */
static bool program_folder(const struct sp_run_request *rq, char to[PATH_MAX])
{
    struct stat st;
    if (rq->kind == SP_PROGRAM_MODULE) {
        snprintf(to, PATH_MAX, "%.*s", (int)strcspn(rq->value, "."), rq->value);
        if (stat(to, &st) != 0)
            snprintf(to, PATH_MAX, "%.*s.py", (int)strcspn(rq->value, "."), rq->value);
        return stat(to, &st) == 0;
    }
    if (rq->kind != SP_PROGRAM_SCRIPT || !sp_real_path(rq->value, to) ||
        stat(to, &st) != 0)
        return false;
    char *slash = S_ISDIR(st.st_mode) ? NULL : strrchr(to, '/');
    if (slash != NULL)
        slash[slash == to] = '\0';
    return true;
}

static const char *variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return *environment + n + 1;
    return NULL;
}

/* The policy as it holds in this run. In the folder of the run. */
static int bind_policy(struct sp_run *run, const char *agents, struct sp_error *reterr)
{
    const struct sp_run_request *rq = run->request;
    char script[PATH_MAX];
    bool has_folder = program_folder(rq, script);
    int code = 0;
    if (sp_places_want_tmp(run->written))
        code = sp_private_folder_make(&run->tmp, reterr);
    if (code == 0)
        code =
            sp_places_find(run->written, &run->interpreter, has_folder ? script : NULL,
                           run->tmp.path[0] != '\0' ? run->tmp.path : NULL, agents,
                           variable(rq->environment, "PATH"), &run->places, reterr);
    if (code == 0)
        code = sp_policy_bind(run->written, &run->places.places, &run->policy, reterr);
    if (code == 0 && sp_policy_observes(run->policy))
        code = sp_policy_opened(run->policy, &run->opened, reterr);
    return code;
}

static int enter_folder(const struct sp_run *run, struct sp_error *reterr)
{
    const char *folder = run->request->folder;
    if (folder != NULL && chdir(folder) != 0)
        return sp_fail_errno(reterr, SP_E_USAGE, "cannot enter the folder '%.300s'",
                             folder);
    return spare_script(run, reterr);
}

/* The guest's standard streams are no place for it but where they are not passed on. */
static int open_events(struct sp_run *run, struct sp_error *reterr)
{
    const int fd = run->request->events;
    if (fd == STDIN_FILENO || (fd < 3 && !run->request->capture))
        return sp_fail(reterr, SP_E_USAGE,
                       fd == STDIN_FILENO
                           ? "--events 0: that is the program's standard input"
                           : "--events %d: the program prints there; --json takes what "
                             "it prints out of the way",
                       fd);
    if (fd < 3 && !run->stdio_open[fd])
        return sp_fail(reterr, SP_E_USAGE, "--events %d: no such descriptor is open",
                       fd);
    return sp_event_stream_open(&run->events, fd, reterr);
}

/* Someone gets to see what happens: a file, or whoever takes the events. */
static bool is_recorded(const struct sp_run *run)
{
    return run->trace.fd >= 0 || sp_event_stream_on(&run->events);
}

/* What is found out about the caller's wishes, up to entering the folder of the run. Leaves nothing
 * behind, and may take its time: a signal ends the program. */
static int prepare_outside(struct sp_run *run, char agents[PATH_MAX],
                           struct sp_error *reterr)
{
    const struct sp_run_request *rq = run->request;
    static struct sp_problems problems;
    run->policy_given = rq->policy.name != NULL || rq->policy.document != NULL;
    if (!sp_host_has_proc())
        return sp_fail(reterr, SP_E_HOST,
                       "/proc is not mounted here, and no run can do without it");
    int code = rq->events >= 0 ? open_events(run, reterr) : 0;
    if (code == 0)
        code =
            sp_policy_choose(&rq->policy, &run->written,
                             rq->problems != NULL ? rq->problems : &problems, reterr);
    if (code == 0)
        code = sp_interpreter_find(rq->python, &run->interpreter, reterr);
    if (code == 0)
        code = sp_agents_path(agents, PATH_MAX, reterr);
    if (code == 0 && rq->sign != NULL && rq->trace == NULL)
        code = sp_fail(reterr, SP_E_USAGE, "there is no trace to sign");
    if (code == 0 && rq->sign != NULL)
        code = sp_signer_open(rq->sign, &run->signer, reterr);
    if (code == 0 && rq->trace != NULL)
        code = sp_trace_file_open(rq->trace, &run->trace, reterr);
    return code == 0 ? enter_folder(run, reterr) : code;
}

/* The caller's win over the policy's, one by one. */
static struct sp_limits limits_of(const struct sp_run *run)
{
    struct sp_limits limits = run->request->limits;
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        if (limits.value[i] == 0)
            limits.value[i] = sp_policy_limit(run->policy, (enum sp_limit)i);
    return limits;
}

static int build_environment(struct sp_run *run, struct sp_error *reterr)
{
    const struct sp_environment_source source = {
        .variables = run->request->environment,
        .given = run->request->environment_given,
        .policy = run->policy,
        .tmp = run->places.places.tmp,
        .user_base = run->places.user_base[0] != '\0' ? run->places.user_base : NULL,
        .limits = &run->plan.limits.limits,
    };
    return sp_environment_build(&source, &run->environment, reterr);
}

/* The programs that supervise and read, the agents, and what is remembered of launchers: a guest that
 * changes them would run outside the next time. And the key that signs the trace, and the file that its
 * lines go to as they are written. */
static void find_own(struct sp_run *run, const char *agents)
{
    char *text = run->own_text;
    char *slash;
    ssize_t n = readlink("/proc/self/exe", text, PATH_MAX - 1);
    run->own_count = 0;
    if (n > 0) {
        text[n] = '\0';
        run->own[run->own_count++] = text;
        char *beside = text + PATH_MAX;
        memcpy(beside, text, (size_t)n + 1);
        slash = strrchr(beside, '/');
        snprintf(slash + 1, (size_t)(beside + PATH_MAX - slash - 1), "sandpit-trace");
        run->own[run->own_count++] = beside;
    }
    if (sp_real_path(agents, text + 2 * PATH_MAX))
        run->own[run->own_count++] = text + 2 * PATH_MAX;
    if (sp_launcher_cache(text + 3 * PATH_MAX))
        run->own[run->own_count++] = text + 3 * PATH_MAX;
    if (run->signer.page != NULL)
        run->own[run->own_count++] = run->signer.path;
    char events[40];
    snprintf(events, sizeof events, "/proc/self/fd/%d", run->events.fd);
    if (run->events.fd >= 0 && run->events.way == SP_EVENT_WAY_FILE &&
        sp_real_path(events, run->events_path))
        run->own[run->own_count++] = run->events_path;
}

/* All else that needs no process yet; folders and control groups are made, which signals must not
 * keep from being removed. */
static int prepare(struct sp_run *run, const char *agents, struct sp_error *reterr)
{
    const struct sp_run_request *rq = run->request;
    char stub[PATH_MAX + 32];
    struct sp_limits limits;
    int code = bind_policy(run, agents, reterr);
    if (code == 0)
        limits = limits_of(run);
    if (code == 0)
        code = sp_plan_make(run->policy, &limits, calls_of(run), rq->accepted,
                            &run->plan, reterr);
    if (code == 0 && run->signer.page != NULL)
        code = sp_plan_hide(&run->plan, run->signer.path, reterr);
    if (code == 0)
        code = check_agent(run, agents, reterr);
    find_own(run, agents);
    if (code == 0)
        code = sp_plan_grant(&run->plan, &run->places.places, run->own, run->own_count,
                             reterr);
    if (code == 0)
        code = build_environment(run, reterr);
    if (code == 0)
        code = sp_plan_grant_programs(&run->plan, &run->places.places,
                                      run->interpreter.path, reterr);
    if (code != 0)
        return code;
    snprintf(stub, sizeof stub, "%s/%s", agents, SP_STUB_NAME);
    snprintf(run->resolver, sizeof run->resolver, "%s/%s", agents, SP_RESOLVER_NAME);
    code = sp_command_build(&run->interpreter, rq->kind, rq->value, rq->python_options,
                            rq->python_options_count, rq->arguments,
                            rq->arguments_count, run->environment.variables, stub,
                            !run->plan.listener, &run->command, reterr);
    if (code == 0)
        code =
            sp_config_build(&run->plan, &run->interpreter, agents, run->command.program,
                            is_recorded(run), &run->config, reterr);
    run->has_text =
        code == 0 && is_recorded(run) && sp_program_text_read(run, &run->text);
    return code;
}

/* A run comes back within its limit; one that was ended comes back at once. */
static uint64_t patience(const struct sp_run *run, bool ended)
{
    uint64_t wall_ns = run->plan.limits.limits.value[SP_LIMIT_WALL];
    uint64_t taken_ns = sp_clock_ns() - run->start_ns;
    uint64_t left_ns = wall_ns > taken_ns ? wall_ns - taken_ns : 0;
    if (ended || (wall_ns != 0 && left_ns < PATIENCE_MIN_NS))
        return PATIENCE_MIN_NS;
    return wall_ns == 0 || left_ns > PATIENCE_MAX_NS ? PATIENCE_MAX_NS : left_ns;
}

static void release(struct sp_run *run, bool ended)
{
    sp_limit_plan_close(&run->plan.limits);
    sp_limit_plan_remove(&run->plan.limits);
    sp_signer_wipe(&run->signer);
    sp_trace_file_release(&run->trace);
    sp_event_stream_close(&run->events);
    sp_command_release(&run->command);
    sp_program_text_release(&run->text);
    sp_environment_release(&run->environment);
    sp_buffer_release(&run->config);
    free(run->opened);
    free(run->policy);
    free(run->written);
    run->opened = run->policy = run->written = NULL;
    sp_private_folder_remove(&run->tmp, patience(run, ended));
}

static void write_start(void *context, struct sp_trace_writer *w,
                        uint32_t python_version)
{
    struct sp_run *run = context;
    if (python_version == 0) /* it began without its agent, which the caller accepted */
        run->plan.degraded |= 1u << SP_ABILITY_AGENT;
    sp_start_record(run, w, python_version);
}

static void on_started(void *context, pid_t pid)
{
    const struct sp_run *run = context;
    if (run->request->started != NULL)
        run->request->started(run->request->context, run, pid);
}

static void on_line(void *context, const char *line, size_t size)
{
    struct sp_run *run = context;
    sp_event_stream_add(&run->events, line, size);
    sp_supervise_line(line, size);
}

static int open_writer(struct sp_run *run, struct sp_error *reterr)
{
    uint64_t cap = run->plan.limits.limits.value[SP_LIMIT_TRACE];
    if (cap == 0 && run->trace.fd >= 0) /* a stream alone fills nothing */
        cap = SP_TRACE_BYTES_MAX;
    const struct sp_trace_options options = {
        .size_max_bytes = cap,
        .checkpoint_bytes = 1u << 20,
        .checkpoint_interval_ns = 1000000000u,
        .on_line = on_line,
        .context = run,
        .packed = run->trace.fd >= 0 && sp_packing_wanted(run->trace.name),
        .key = sp_signer_key(&run->signer)};
    int fd = run->trace.fd >= 0 ? fcntl(run->trace.fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (run->trace.fd >= 0 && fd < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot open the trace");
    int code = sp_trace_writer_new(fd, &options, &run->writer, reterr);
    if (code != 0 && fd >= 0)
        close(fd);
    return code;
}

/* Seals the supervisor itself: without capabilities, inside the outer Landlock domain. The
 * ruleset of the guest's inner one is made on the way. */
static int seal_supervisor(const struct sp_run *run, int *ret_ruleset,
                           struct sp_error *reterr)
{
    sp_auto_fd ruleset = -1;
    *ret_ruleset = -1;
    prctl(PR_SET_DUMPABLE, 1, 0, 0,
          0); /* until the guest has checked its domain (launch) */
    int code = sp_privileges_drop(reterr);
    if (code != 0 || run->plan.host.landlock_abi < 1)
        return code;
    if (!sp_landlock_empty(&run->plan.landlock))
        code = sp_landlock_build(&run->plan.landlock, &ruleset, reterr);
    if (code == 0)
        code = sp_landlock_build(&run->plan.guest, ret_ruleset, reterr);
    if (code == 0 && ruleset >= 0) {
        int result = sp_landlock_enter(ruleset);
        if (result != 0) {
            errno = -result;
            code = sp_fail_errno(reterr, SP_E_HOST, "cannot enter the Landlock domain");
        }
    }
    return code;
}

static struct sp_launch launch_of(struct sp_run *run, const struct inherited *inherited,
                                  int ruleset)
{
    return (struct sp_launch){.path = run->interpreter.path,
                              .argv = run->command.argv,
                              .envp = run->command.envp,
                              .folder = -1,
                              .terminal = -1,
                              .channel = -1,
                              .ruleset = ruleset,
                              .scoped = sp_landlock_scoped(&run->plan.landlock),
                              .filter = &run->plan.filter,
                              .limits = &run->plan.limits.seal,
                              .listener = run->plan.listener,
                              .file_mask = inherited->file_mask,
                              .mask = &inherited->mask,
                              .pipe_ignored = inherited->pipe_ignored,
                              .child_ignored = inherited->child_ignored,
                              .size_ignored = inherited->size_ignored};
}

static int supervise(struct sp_run *run, const struct inherited *inherited,
                     const sigset_t *signals, struct sp_outcome *ret_outcome,
                     struct sp_error *reterr)
{
    int ruleset = -1;
    int code = sp_signer_claim(&run->signer, reterr);
    if (code == 0)
        code = open_writer(run, reterr);
    if (code == 0)
        code = seal_supervisor(run, &ruleset, reterr);
    if (code != 0)
        return code;
    struct sp_host host = {.pidfd_getfd = true};
    sp_host_lower(&host, getenv("SANDPIT_FORCE"));
    struct sp_launch launch = launch_of(run, inherited, ruleset);
    int abi = run->plan.host.landlock_abi;
    const struct sp_supervision supervision = {
        .policy = run->opened != NULL ? run->opened : run->policy,
        .observed = run->opened != NULL ? run->policy : NULL,
        .writable = {run->plan.writable.items, run->plan.writable.count},
        .readable = {run->plan.readable.items, run->plan.readable.count},
        .own = {run->own, run->own_count},
        .hidden = {.path = run->signer.page != NULL ? run->signer.path : NULL,
                   .device = run->signer.place.device,
                   .inode = run->signer.place.inode},
        .reads_judged = run->plan.reads_judged,
        .writes_judged = run->plan.writes_judged,
        .interpreters = {run->plan.programs.others, run->plan.programs.others_count},
        .interpreters_known =
            run->plan.programs.bounded && !run->plan.programs.by_folder && abi >= 1,
        .resolver = run->resolver,
        .reach = run->plan.reach,
        .private_folder = run->places.places.tmp,
        .writes_guarded = abi >= 1,
        .truncation_guarded = abi >= 3,
        .moves_granted = abi >= 2,
        .launch = &launch,
        .needs_agent = run->plan.needs_agent,
        .signals_scoped = sp_landlock_scoped(&run->plan.landlock),
        .keep_sockets = !host.pidfd_getfd,
        .calls = run->plan.calls,
        .config = run->config.data,
        .config_size = run->config.size,
        .writer = run->writer,
        .events = &run->events,
        .start_ns = run->start_ns,
        .limits = &run->plan.limits,
        .stdio = run->stdio,
        .capture = run->request->capture,
        .capture_max = run->request->capture_max,
        .control = run->request->control,
        .debug = run->request->debug,
        .source = run->has_text ? &run->text.source : NULL,
        .write_start = write_start,
        .on_started = on_started,
        .context = run,
        .signals = signals};
    return sp_supervise(&supervision, ret_outcome, reterr);
}

/* What the program printed and nobody could take: it was told of a broken pipe, perhaps after
 * its last word. A reader that went away is no error. */
static int check_output(const struct sp_outcome *outcome, struct sp_error *reterr)
{
    for (int i = 0; i < 2; i++) {
        errno = outcome->streams[i].lost;
        if (errno != 0)
            return sp_fail_errno(reterr, SP_E_HOST,
                                 "the program's %s could not be written",
                                 i == 0 ? "output" : "error output");
    }
    return 0;
}

/* Not by itself: whoever started it waits for its end, not for readers. */
static bool was_ended(const struct sp_outcome *outcome, int code)
{
    return code != 0 || sp_status_limit(outcome->status) ||
           outcome->status == SP_STATUS_CANCELLED;
}

/* How far the supervisor came; the keeper, which still has its capabilities, does the rest. */
enum { FINISHED = 1, FINISHED_UNPUBLISHED };

/* The supervisor's life; its exit code. A trace is left behind as soon as anything ran. */
static int supervisor_main(struct sp_run *run, const struct inherited *inherited,
                           const sigset_t *signals, pid_t keeper, int *finished)
{
    struct sp_outcome outcome = {0};
    struct sp_error error;
    /* Files that are made for the guest get the mode that it asks for, less its own mask. */
    umask(0);
    int code = supervise(run, inherited, signals, &outcome, &error);
    umask(inherited->file_mask);
    bool ran = run->writer != NULL && sp_trace_count(run->writer, SP_KIND_START) > 0;
    if (code == 0)
        code = sp_trace_finish(run->writer, &error);
    else if (ran)
        sp_trace_flush(run->writer, true);
    sp_signer_wipe(&run->signer);
    bool may_publish = run->trace.fd < 0 || sp_trace_file_may_publish(&run->trace);
    if (run->trace.fd >= 0 && ran && may_publish) {
        int placed = sp_trace_file_publish(&run->trace, code == 0 ? &error : NULL);
        code = code == 0 ? placed : code;
    }
    if (code == 0)
        code = check_output(&outcome, &error);
    sp_event_stream_finish(&run->events,
                           sp_clock_ns() + patience(run, was_ended(&outcome, code)));
    /* The keeper does it as well; but it may be the keeper that died. */
    sp_limit_plan_remove(&run->plan.limits);
    if (getppid() != keeper)
        sp_private_folder_remove(&run->tmp, patience(run, false));
    int exit_code =
        run->request->conclude(run->request->context, run, code == 0 ? &outcome : NULL,
                               code == 0 ? NULL : &error);
    int state = ran && !may_publish ? FINISHED_UNPUBLISHED : FINISHED;
    __atomic_store_n(finished, state, __ATOMIC_RELEASE);
    return exit_code;
}

/* A supervisor that dies leaves the caller's terminal in raw mode: the keeper knows how it was. */
static bool save_terminal(struct termios *ret_settings)
{
    return isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, ret_settings) == 0;
}

int sp_run(const struct sp_run_request *request, int *ret_exit_code,
           struct sp_error *reterr)
{
    static struct sp_run run; /* large; one a process */
    char agents[PATH_MAX];
    struct inherited inherited;
    sigset_t signals;
    int *finished;
    bool died;
    struct termios settings;
    /* It is zero already: clearing it all would cost the faults of its pages, twice. */
    run.request = request;
    run.trace.fd = run.trace.folder = run.tmp.fd = run.events.fd = run.events.epoll =
        -1;
    run.start_ns = sp_clock_ns();
    run.start_wall_ns = sp_clock_wall_ns();
    secure_stdio(&run);
    int code = prepare_outside(&run, agents, reterr);
    if (code == 0) {
        take_signals(&inherited, &signals);
        code = prepare(&run, agents, reterr);
    }
    if (code != 0) {
        release(&run, false);
        return code;
    }
    inherited.file_mask = umask(0);
    umask(inherited.file_mask);
    bool terminal = save_terminal(&settings);
    pid_t keeper = getpid();
    pid_t supervisor = sp_keeper_fork(&finished);
    if (supervisor == 0) {
        int exit_code = supervisor_main(&run, &inherited, &signals, keeper, finished);
        fflush(NULL);
        _exit(exit_code);
    }
    if (supervisor < 0) {
        code = sp_fail_errno(reterr, SP_E_HOST, "cannot start the supervisor");
        release(&run, false);
        return code;
    }
    sp_event_stream_close(
        &run.events);            /* the reader's end comes with the supervisor's */
    sp_signer_wipe(&run.signer); /* the supervisor has it */
    *ret_exit_code = sp_keeper_wait(supervisor, finished, &run.trace, &died);
    if (died && terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
    if (!died && *finished == FINISHED_UNPUBLISHED)
        code = sp_trace_file_publish(&run.trace, reterr);
    if (died)
        code = sp_fail(reterr, SP_E_INTERNAL,
                       "the supervisor died: the run was ended%s%.300s",
                       run.trace.fd >= 0 ? ", its trace is cut: " : "",
                       run.trace.fd >= 0 ? run.trace.path : "");
    release(&run, died || *ret_exit_code >= ENDED);
    return code;
}
