/* The commands of `sandpit`: what each is called, the options it takes, what they fill. */
#ifndef SP_CLI_COMMANDS_H
#define SP_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"
#include "policy/limit.h"
#include "policy/policy.h"

/* Exit codes that are sandpit's own, not the program's. */
enum sp_exit {
    SP_EXIT_OK = 0,
    SP_EXIT_NO = 1,        /* other commands than run: as each says */
    SP_EXIT_BAD_INPUT = 2, /* other commands than run */
    SP_EXIT_TIMEOUT = 124, /* the wall limit ended the run */
    SP_EXIT_FAILED = 125,  /* bad input of run, or sandpit's own fault */
    SP_EXIT_POLICY = 126,  /* ended by policy, or by --fail-on-violation */
    SP_EXIT_MISSING = 127, /* script or interpreter not found */
    SP_EXIT_SIGNAL = 128,  /* + the signal's number */
    SP_EXIT_LIMIT = 137,   /* any limit but the wall limit */
};

/* The exit code of `run` for an error of ours: 127 for SP_E_NOT_FOUND, else 125. */
int sp_exit_for_error(const struct sp_error *error);

enum sp_color_when {
    SP_COLOR_AUTO, /* on a terminal, unless NO_COLOR is set */
    SP_COLOR_ALWAYS,
    SP_COLOR_NEVER,
};

/* Options of `run`. Pointers are into argv. */
struct sp_run_options {
    const char *code;        /* -c: the program's text */
    const char *module;      /* -m */
    const char *policy;      /* NULL: none given */
    struct sp_marked grants; /* the mark is 2 * enum sp_list + enum sp_action */
    struct sp_limits limits; /* 0: not given */
    const char *trace_path;  /* -o; NULL: named after the program */
    bool no_trace;
    uint64_t events;                /* a descriptor; UINT64_MAX: none */
    const char *sign;               /* file of the key that signs it */
    int calls;                      /* enum sp_calls_level */
    const char *python;             /* NULL: find one */
    struct sp_texts python_options; /* for the interpreter itself, before the program */
    bool json;
    bool quiet;
    bool fail_on_violation;
    bool observe;
    struct sp_texts allow_degraded; /* layers' names, each a known one */
    bool debug;
    int color; /* enum sp_color_when */
};

struct sp_doctor_options {
    bool json;
    const char *python;
    int color;
};

struct sp_gc_options {
    bool dry_run;
};

/* Every command, the hidden ones too, ended by a NULL name. */
extern const struct sp_command sp_commands[];

const struct sp_command *sp_command_find(const char *name); /* NULL: unknown */

/* A command of a group ("policy show") by what stands behind the group's name; NULL: unknown. */
const struct sp_command *sp_command_find_in(const struct sp_command *group,
                                            const char *name);
bool sp_command_is_in(const struct sp_command *group, const struct sp_command *command);

/* One function per command; `argv` holds the `argc` arguments left after the options, and
 * argv[argc] is NULL. They return the exit code. For `run` they are the script and what
 * follows it; after -c or -m, the program's arguments only. */
int sp_cli_run(const void *values, int argc, char **argv); /* run.c */
int sp_cli_run_spec(const void *values, int argc,
                    char **argv); /* run_spec.c: argv[0] is FD */
int sp_cli_doctor(const void *values, int argc, char **argv);
int sp_cli_keygen(const void *values, int argc, char **argv); /* argv: PREFIX */
int sp_cli_gc(const void *values, int argc, char **argv);     /* argv: folders */
int sp_cli_completion(const void *values, int argc, char **argv);
int sp_cli_manual(const void *values, int argc, char **argv);
int sp_cli_help(const void *values, int argc, char **argv);

/* Reads the command's options, then calls it, or prints its help. Returns the exit code. */
int sp_command_call(const struct sp_command *command, int argc, char **argv);

/* Writes out what was printed. `status`, or a message and `failure` when that did not work. */
int sp_output_flushed(int status, int failure);

/* Runs the command by its own program, installed beside ours; argv[1] is the command's name.
 * Returns, with an exit code, only when it cannot be started. */
int sp_exec_beside(const struct sp_command *command, char **argv);

/* Prints "sandpit: <message>" on stderr and returns `status`. Bytes that could act on a
 * terminal are shown escaped. */
int sp_cli_error(int status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether to colour what goes to `fd`. */
bool sp_color_wanted(enum sp_color_when when, int fd);

/* Help, to stdout: of one command, and of the program. */
void sp_help_command(const struct sp_command *command);
void sp_help_program(void);

#endif
