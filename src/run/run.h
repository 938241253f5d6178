/* One run, from what the caller asks for to what came of it.
 *
 *     request -> policy -> plan -> keeper and supervisor -> outcome -> conclude()
 *
 * Everything that can be found wrong without starting anything is found before the keeper
 * forks, and comes back as an error.
 */
#ifndef SP_RUN_RUN_H
#define SP_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "plan/interpreter.h"
#include "plan/places.h"
#include "plan/plan.h"
#include "run/command.h"
#include "run/environment.h"
#include "run/policy_choice.h"
#include "run/private_folder.h"
#include "run/program_text.h"
#include "run/signer.h"
#include "run/trace_file.h"
#include "supervise/event_stream.h"
#include "supervise/supervise.h"

#define SP_CAPTURE_MAX                                                                 \
    (16u << 20) /* of each output, unless the caller says otherwise */

struct sp_run;

struct sp_run_request {
    enum sp_program kind;
    const char *value; /* script, module or code */
    char *const *arguments;
    size_t arguments_count;
    const char *const *python_options;
    size_t python_options_count;
    struct sp_policy_choice policy;
    struct sp_problems *problems; /* gets all that is wrong with a policy file */
    struct sp_limits limits;      /* what the caller sets; the policy fills the rest */
    bool calls_given;             /* else the policy says */
    enum sp_calls_level calls;
    const char *trace; /* NULL: none is kept */
    int events;        /* descriptor that gets each line of it, -1: none. Taken over */
    const char *sign;  /* file of the key that signs it; NULL: it is not signed */
    const char *python;
    char *const *environment;
    bool environment_given; /* for this run, one by one: the policy has no say in it */
    const char *folder;     /* to run in, NULL: the current one */
    unsigned accepted;      /* bits of enum sp_ability that may be missing */
    bool capture;
    uint64_t capture_max;
    int control; /* -1: none */
    bool debug;

    /* Both are called in the supervisor. started (may be NULL): the program has begun.
     * conclude: it is over; exactly one of outcome and error is not NULL. Tells the caller
     * and returns the exit code. The guest is gone and the trace in its place. */
    void (*started)(void *context, const struct sp_run *run, pid_t pid);
    int (*conclude)(void *context, const struct sp_run *run,
                    const struct sp_outcome *outcome, const struct sp_error *error);
    void *context;
};

/* What a run was made of. */
struct sp_run {
    const struct sp_run_request *request;
    struct sp_policy *written; /* the policy before it was bound to the run */
    struct sp_policy *policy;
    struct sp_policy *opened; /* in force where `policy` is only observed, else NULL */
    bool policy_given;
    struct sp_run_places places;
    const char *own[6]; /* sandpit's own files and folders */
    char events_path[PATH_MAX];
    size_t own_count;
    char own_text[4 * PATH_MAX];
    struct sp_signer signer;
    char resolver[PATH_MAX + 32];
    struct sp_private_folder tmp;
    struct sp_environment environment;
    struct sp_interpreter interpreter;
    struct sp_plan plan;
    struct sp_command_line command;
    struct sp_program_text text; /* where the run is recorded */
    bool has_text;
    struct sp_trace_file trace; /* fd -1: none */
    struct sp_event_stream events;
    struct sp_buffer config;
    struct sp_trace_writer *writer; /* in the supervisor */
    int stdio[3];
    bool stdio_open[3];
    uint64_t start_ns;
    uint64_t start_wall_ns;
};

/* Runs it and returns conclude()'s exit code in *ret_exit_code. Fails when nothing was started,
 * or when the supervisor died. The calling process must have one thread. */
int sp_run(const struct sp_run_request *request, int *ret_exit_code,
           struct sp_error *reterr) SP_MUST_CHECK;

#endif
