#include "run/start_record.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "run/run.h"
#include "trace/writer.h"

static const char *const program_names[] = {"script", "module", "code", "stdin"};
static const char *const calls_names[] = {"off", "first", "folded", "all"};

void sp_python_version_text(uint32_t hex, char *to, size_t size)
{
    snprintf(to, size, "%u.%u.%u", hex >> 24, (hex >> 16) & 0xff, (hex >> 8) & 0xff);
}

static void member(struct sp_buffer *to, const char *key, const char *text)
{
    sp_json_key(to, key);
    sp_json_string(to, text, strlen(text));
}

static void write_host(const struct sp_run *run, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    member(to, "kernel", run->plan.host.kernel);
    member(to, "arch", run->plan.host.arch);
    sp_json_key(to, "landlock");
    sp_json_int(to, run->plan.host.landlock_abi);
    sp_buffer_text(to, "}");
}

static void write_arguments(const struct sp_run *run, struct sp_buffer *to)
{
    sp_buffer_text(to, "[");
    for (char *const *argument = run->command.argv; *argument != NULL; argument++) {
        size_t size = strlen(*argument);
        sp_buffer_text(to, argument == run->command.argv ? "" : ",");
        sp_json_string(to, *argument, size > 4096 ? 4096 : size);
    }
    sp_buffer_text(to, "]");
}

static void write_interpreter(const struct sp_run *run, uint32_t hex,
                              struct sp_buffer *to)
{
    char version[32];
    sp_buffer_text(to, "{");
    member(to, "path", run->interpreter.path);
    if (hex != 0) {
        sp_python_version_text(hex, version, sizeof version);
        member(to, "version", version);
    }
    sp_buffer_text(to, "}");
}

void sp_start_record(const struct sp_run *run, struct sp_trace_writer *w,
                     uint32_t python_version)
{
    char folder[PATH_MAX];
    sp_trace_string(w, "sandpit", SP_VERSION);
    sp_trace_uint(w, "time", run->start_wall_ns);
    write_host(run, sp_trace_value(w, "host"));
    sp_trace_string(w, "program", program_names[run->request->kind]);
    sp_trace_string(w, "script",
                    run->command.program[0] != '\0' ? run->command.program : NULL);
    write_arguments(run, sp_trace_value(w, "argv"));
    if (getcwd(folder, sizeof folder) != NULL)
        sp_trace_string(w, "cwd", folder);
    sp_policy_choice_write(run->written, sp_trace_value(w, "policy"));
    write_interpreter(run, python_version, sp_trace_value(w, "interpreter"));
    sp_environment_write(&run->environment, sp_policy_observes(run->policy),
                         sp_trace_value(w, "env"));
    sp_trace_string(w, "calls", calls_names[run->plan.calls]);
    sp_plan_enforced_by(&run->plan, sp_trace_value(w, "enforced_by"));
    sp_plan_recorded_by(&run->plan, sp_trace_value(w, "recorded_by"));
    sp_plan_degraded(&run->plan, sp_trace_value(w, "degraded"));
}
