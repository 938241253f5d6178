#include "run/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/launch.h"

/* The stub takes it out of the environment before the interpreter starts. */
#define STRING(x)          #x
#define SETTING(fd)        "SANDPIT_CHANNEL=" STRING(fd)
#define SP_CHANNEL_SETTING SETTING(SP_CHANNEL_FD)

/* As CPython makes it: the current folder before a relative name, nothing else changed. */
static int absolute_script(const char *script, char to[PATH_MAX],
                           struct sp_error *reterr)
{
    struct stat st;
    char folder[PATH_MAX] = "";
    if (stat(script, &st) != 0)
        return sp_fail_errno(reterr, SP_E_NOT_FOUND, "cannot open '%.300s'", script);
    /* What a shell makes of <(...): a pipe of ours that the program does not inherit. */
    if (strncmp(script, "/dev/fd/", 8) == 0 && strtol(script + 8, NULL, 10) > 2)
        return sp_fail(
            reterr, SP_E_NOT_FOUND,
            "'%.300s' is a descriptor, and the program gets none but 0, 1 and 2: "
            "give the script on standard input, as `sandpit run -`",
            script);
    if (script[0] != '/' && getcwd(folder, sizeof folder) == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "the current folder cannot be read");
    if (snprintf(to, PATH_MAX, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                 script) >= PATH_MAX)
        return sp_fail(reterr, SP_E_NOT_FOUND, "the path of the script is too long");
    return 0;
}

static int build_arguments(const struct sp_interpreter *interpreter,
                           enum sp_program kind, const char *value,
                           const char *const *options, size_t options_count,
                           char *const *arguments, size_t arguments_count,
                           struct sp_command_line *command)
{
    size_t n = 0;
    command->argv = calloc(options_count + arguments_count + 6, sizeof *command->argv);
    if (command->argv == NULL)
        return -1;
    command->argv[n++] = (char *)interpreter->name;
    for (size_t i = 0; i < options_count; i++)
        command->argv[n++] = (char *)options[i];
    if (kind == SP_PROGRAM_MODULE)
        command->argv[n++] = (char *)"-m";
    if (kind == SP_PROGRAM_CODE)
        command->argv[n++] = (char *)"-c";
    /* The interpreter would take the name for an option. */
    if (kind == SP_PROGRAM_SCRIPT && value[0] == '-')
        command->argv[n++] = (char *)"--";
    command->argv[n++] = kind == SP_PROGRAM_STDIN ? (char *)"-" : (char *)value;
    for (size_t i = 0; i < arguments_count; i++)
        command->argv[n++] = arguments[i];
    return 0;
}

static int build_environment(char *const *environment, const char *stub, bool channel,
                             struct sp_command_line *command)
{
    size_t count = 0;
    const char *before = NULL;
    while (environment[count] != NULL)
        count++;
    command->envp = calloc(count + 3, sizeof *command->envp);
    if (command->envp == NULL)
        return -1;
    /* In the place of the caller's own, if there is one; what stands behind the colon, nothing
     * at all too, is what the program will find. */
    size_t place = count;
    for (size_t i = 0; i < count; i++) {
        command->envp[i] = environment[i];
        if (before == NULL && strncmp(environment[i], "LD_PRELOAD=", 11) == 0) {
            before = environment[i] + 11;
            place = i;
        }
    }
    if (asprintf(&command->preload, "LD_PRELOAD=%s%s%s", stub,
                 before != NULL ? ":" : "", before != NULL ? before : "") < 0) {
        command->preload = NULL;
        return -1;
    }
    command->envp[place] = command->preload;
    size_t n = before != NULL ? count : count + 1;
    if (channel)
        command->envp[n++] = (char *)SP_CHANNEL_SETTING;
    return 0;
}

int sp_command_build(const struct sp_interpreter *interpreter, enum sp_program kind,
                     const char *value, const char *const *options,
                     size_t options_count, char *const *arguments,
                     size_t arguments_count, char *const *environment, const char *stub,
                     bool channel, struct sp_command_line *ret_command,
                     struct sp_error *reterr)
{
    *ret_command = (struct sp_command_line){0};
    if (kind == SP_PROGRAM_SCRIPT) {
        int code = absolute_script(value, ret_command->program, reterr);
        if (code != 0)
            return code;
    }
    if (build_arguments(interpreter, kind, value, options, options_count, arguments,
                        arguments_count, ret_command) != 0 ||
        build_environment(environment, stub, channel, ret_command) != 0) {
        sp_command_release(ret_command);
        return sp_fail(reterr, SP_E_HOST, "no memory for the command line");
    }
    return 0;
}

void sp_command_release(struct sp_command_line *command)
{
    free(command->argv);
    free(command->envp);
    free(command->preload);
    *command = (struct sp_command_line){0};
}
