/* The command line and the environment that the guest is started with: the caller's own. */
#ifndef SP_RUN_COMMAND_H
#define SP_RUN_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "plan/interpreter.h"

enum sp_program {
    SP_PROGRAM_SCRIPT, /* a file, folder or zip archive */
    SP_PROGRAM_MODULE, /* -m */
    SP_PROGRAM_CODE,   /* -c */
    SP_PROGRAM_STDIN,  /* - */
};

struct sp_command_line {
    char **argv;            /* NULL-terminated; the strings are borrowed */
    char **envp;            /* NULL-terminated */
    char *preload;          /* owned: "LD_PRELOAD=..." */
    char program[PATH_MAX]; /* absolute path of the script, "" when there is none */
};

/* `value` is the script's path, the module's name, the code; NULL for SP_PROGRAM_STDIN.
 * `options` are for the interpreter itself, before the program. `environment` as environ.
 * `stub` is preloaded, before what the caller preloads; `channel`: it is told of the channel's
 * descriptor. SP_E_NOT_FOUND when the script does
 * not exist. */
int sp_command_build(const struct sp_interpreter *interpreter, enum sp_program kind,
                     const char *value, const char *const *options,
                     size_t options_count, char *const *arguments,
                     size_t arguments_count, char *const *environment, const char *stub,
                     bool channel, struct sp_command_line *ret_command,
                     struct sp_error *reterr) SP_MUST_CHECK;
void sp_command_release(struct sp_command_line *command);

#endif
