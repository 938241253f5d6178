/* `sandpit run-spec FD`: how the Python package, or any other language, asks for a run.
 *
 * FD is one end of a Unix stream socket. One JSON object in a line comes in; lines with events
 * go out, the last one with the result or an error. Whatever else comes in, and the socket's
 * closing, ends the run. Nothing of the request stands in an argv.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/scope.h"
#include "cli/commands.h"
#include "cli/spec_policy.h"
#include "run/result.h"
#include "run/run.h"

#define SPEC_BYTES_MAX (256u << 20)

static int read_line(int fd, struct sp_buffer *to, struct sp_error *reterr)
{
    for (;;) {
        char *room = sp_buffer_reserve(to, 65536);
        if (room == NULL)
            return sp_fail(reterr, SP_E_USAGE, "the request is too large");
        /* Not beyond the line: what follows is for the supervisor. */
        ssize_t n = recv(fd, room, 65536, MSG_PEEK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return sp_fail(reterr, SP_E_USAGE, "no request came on descriptor %d", fd);
        const char *end = memchr(room, '\n', (size_t)n);
        size_t take = end != NULL ? (size_t)(end - room) + 1 : (size_t)n;
        if (recv(fd, room, take, 0) != (ssize_t)take)
            return sp_fail_errno(reterr, SP_E_USAGE, "the request cannot be read");
        sp_buffer_advance(to, take);
        if (end != NULL)
            return 0;
    }
}

static int bad(const char *key, struct sp_error *reterr)
{
    return sp_fail(reterr, SP_E_USAGE,
                   "the request's '%s' is missing or of the wrong kind", key);
}

/* A text or null; stays allocated for the life of the process. */
static int optional_text(const json_t *spec, const char *key, const char **ret_text,
                         struct sp_error *reterr)
{
    const json_t *value = json_object_get(spec, key);
    if (value == NULL || json_is_null(value))
        return 0;
    *ret_text = sp_spec_text(value);
    return *ret_text != NULL ? 0 : bad(key, reterr);
}

static int texts(const json_t *spec, const char *key, char ***ret_texts,
                 size_t *ret_count, struct sp_error *reterr)
{
    const json_t *list = json_object_get(spec, key);
    size_t count = json_array_size(list);
    if (list != NULL && !json_is_array(list))
        return bad(key, reterr);
    char **items = calloc(count + 1, sizeof *items);
    for (size_t i = 0; items != NULL && i < count; i++)
        if ((items[i] = sp_spec_text(json_array_get(list, i))) == NULL)
            return bad(key, reterr);
    if (items == NULL)
        return sp_fail(reterr, SP_E_HOST, "no memory for the request");
    *ret_texts = items;
    *ret_count = count;
    return 0;
}

static int environment(const json_t *spec, char *const **ret_environment,
                       bool *ret_given, struct sp_error *reterr)
{
    json_t *table = json_object_get(spec, "env");
    *ret_environment = environ;
    if (table == NULL || json_is_null(table))
        return 0;
    if (!json_is_object(table))
        return bad("env", reterr);
    char **items = calloc(json_object_size(table) + 1, sizeof *items);
    size_t n = 0;
    const char *key;
    json_t *value;
    json_object_foreach(table, key, value)
    {
        sp_auto_free char *text = sp_spec_text(value);
        if (items == NULL || text == NULL ||
            asprintf(&items[n++], "%s=%s", key, text) < 0)
            return bad("env", reterr);
    }
    *ret_environment = items;
    *ret_given = true;
    return 0;
}

static int word(const json_t *spec, const char *key, const char *const *words,
                int otherwise, int *ret_index, struct sp_error *reterr)
{
    const char *text = json_string_value(json_object_get(spec, key));
    *ret_index = otherwise;
    if (text == NULL)
        return 0;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) {
            *ret_index = i;
            return 0;
        }
    return sp_fail(reterr, SP_E_USAGE, "'%.60s' is no value of '%s'", text, key);
}

static int program(const json_t *spec, struct sp_run_request *request,
                   struct sp_error *reterr)
{
    static const char *const kinds[] = {"script", "module", "code", "stdin", NULL};
    const json_t *value = json_object_get(spec, "program");
    int kind;
    int code = word(value, "kind", kinds, -1, &kind, reterr);
    if (code == 0 && kind < 0)
        code = bad("program", reterr);
    if (code == 0)
        code = optional_text(value, "value", &request->value, reterr);
    if (code == 0 && request->value == NULL && kind != SP_PROGRAM_STDIN)
        code = bad("program", reterr);
    request->kind = (enum sp_program)kind;
    return code;
}

static int accepted(const json_t *spec, unsigned *ret_bits, struct sp_error *reterr)
{
    char **names = NULL;
    size_t count = 0;
    int code = texts(spec, "allow_degraded", &names, &count, reterr);
    for (size_t i = 0; code == 0 && i < count; i++) {
        int ability = sp_ability_find(names[i]);
        if (ability < 0)
            return sp_fail(reterr, SP_E_USAGE,
                           "'%.60s' is nothing that can be degraded", names[i]);
        *ret_bits |= 1u << ability;
    }
    return code;
}

/* Each is a number (seconds, bytes, a count) or a text as in a policy. */
static int limits(const json_t *spec, struct sp_limits *ret_limits,
                  struct sp_error *reterr)
{
    json_t *table = json_object_get(spec, "limits");
    const char *name;
    json_t *value;
    if (table == NULL || json_is_null(table))
        return 0;
    if (!json_is_object(table))
        return bad("limits", reterr);
    json_object_foreach(table, name, value)
    {
        struct sp_error error = {0};
        int limit = sp_limit_find(name);
        if (limit < 0)
            return sp_fail(reterr, SP_E_USAGE, "limits: there is no limit '%.60s'",
                           name);
        uint64_t *to = &ret_limits->value[limit];
        int code = 0;
        if (json_is_string(value))
            code = sp_limit_parse((enum sp_limit)limit, json_string_value(value), to,
                                  &error);
        else if (json_is_number(value))
            code = sp_limit_from_number((enum sp_limit)limit, json_number_value(value),
                                        to, &error);
        else if (!json_is_null(value))
            return bad("limits", reterr);
        if (code != 0)
            return sp_fail(reterr, SP_E_USAGE, "limits: %s: %s", name, error.message);
    }
    return 0;
}

/* The number of a descriptor that the caller hands down. */
static int events(const json_t *spec, struct sp_run_request *rq,
                  struct sp_error *reterr)
{
    const json_t *value = json_object_get(spec, "events");
    const json_int_t fd = json_integer_value(value);
    if (value == NULL || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || fd < 3 || fd > INT_MAX || fd == rq->control)
        return bad("events", reterr);
    rq->events = (int)fd;
    return 0;
}

static int take_request(const json_t *spec, struct sp_run_request *rq,
                        struct sp_error *reterr)
{
    static const char *const levels[] = {"off", "first", "folded", "all", NULL};
    static struct sp_spec_policy kept_policy; /* for the life of the process */
    char **arguments = NULL;
    char **options = NULL;
    int calls = -1;
    if (json_integer_value(json_object_get(spec, "version")) != 1)
        return sp_fail(reterr, SP_E_USAGE, "the request is not of version 1");
    int code = program(spec, rq, reterr);
    if (code == 0)
        code = texts(spec, "args", &arguments, &rq->arguments_count, reterr);
    if (code == 0)
        code =
            texts(spec, "python_options", &options, &rq->python_options_count, reterr);
    if (code == 0)
        code = sp_spec_policy_take(spec, &kept_policy, &rq->policy, reterr);
    if (code == 0)
        code = optional_text(spec, "trace", &rq->trace, reterr);
    if (code == 0)
        code = optional_text(spec, "sign", &rq->sign, reterr);
    if (code == 0)
        code = optional_text(spec, "python", &rq->python, reterr);
    if (code == 0)
        code = optional_text(spec, "cwd", &rq->folder, reterr);
    if (code == 0)
        code = environment(spec, &rq->environment, &rq->environment_given, reterr);
    if (code == 0)
        code = word(spec, "calls", levels, -1, &calls, reterr);
    if (code == 0)
        code = accepted(spec, &rq->accepted, reterr);
    if (code == 0)
        code = limits(spec, &rq->limits, reterr);
    json_int_t capture_max = json_integer_value(json_object_get(spec, "capture_max"));
    rq->arguments = arguments;
    rq->python_options = (const char *const *)options;
    rq->calls_given = calls >= 0;
    rq->calls = (enum sp_calls_level)calls;
    rq->policy.observe = json_is_true(json_object_get(spec, "observe"));
    if (code == 0)
        code = events(spec, rq, reterr);
    rq->capture = json_is_true(json_object_get(spec, "capture"));
    rq->capture_max = capture_max > 0 ? (uint64_t)capture_max : SP_CAPTURE_MAX;
    return code;
}

static void started(void *context, const struct sp_run *run, pid_t pid)
{
    const int *fd = context;
    (void)run;
    dprintf(*fd, "{\"event\":\"started\",\"pid\":%d}\n", (int)pid);
}

/* All that is wrong with the policy. */
static struct sp_problems problems;

static void write_error(int fd, const struct sp_error *error)
{
    (void)!write(fd, "{\"error\":", 9);
    (void)sp_error_write(fd, error, &problems);
    (void)!write(fd, "}\n", 2);
}

static int conclude(void *context, const struct sp_run *run,
                    const struct sp_outcome *outcome, const struct sp_error *error)
{
    const int *fd = context;
    if (error != NULL) {
        write_error(*fd, error);
        return sp_exit_for_error(error);
    }
    (void)!write(*fd, "{\"result\":", 10);
    (void)sp_result_write(*fd, run, outcome, outcome->exit_code);
    (void)!write(*fd, "}\n", 2);
    return outcome->exit_code;
}

int sp_cli_run_spec(const void *values, int argc, char **argv)
{
    struct sp_error error;
    char *end;
    int fd = argc == 1 ? (int)strtol(argv[0], &end, 10) : -1;
    (void)values;
    if (fd < 0 || *end != '\0' || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return sp_cli_error(SP_EXIT_FAILED,
                            "run-spec takes the number of an open descriptor");
    struct sp_run_request request = {.problems = &problems,
                                     .events = -1,
                                     .control = fd,
                                     .started = started,
                                     .conclude = conclude,
                                     .context = &fd};
    struct sp_buffer line;
    json_error_t where;
    int exit_code;
    sp_buffer_init(&line, SPEC_BYTES_MAX);
    int code = sodium_init() < 0
                   ? sp_fail(&error, SP_E_HOST, "libsodium does not start")
                   : read_line(fd, &line, &error);
    json_t *spec =
        code == 0 ? json_loadb(line.data, line.size, JSON_ALLOW_NUL, &where) : NULL;
    if (code == 0 && spec == NULL)
        code = sp_fail(&error, SP_E_USAGE, "the request is no JSON object: %s",
                       where.text);
    sp_buffer_release(&line);
    if (code == 0)
        code = take_request(spec, &request, &error);
    json_decref(spec);
    if (code == 0)
        code = sp_run(&request, &exit_code, &error);
    if (code == 0)
        return exit_code;
    write_error(fd, &error);
    return sp_exit_for_error(&error);
}
