/* Command-line options from tables: one table per command gives parsing, --help, shell
 * completion and the manual page.
 *
 * An option names the field of the command's own struct that it fills, so that a command reads
 * plain fields. Parsing stops at the first argument that is no option, after `--`, after an
 * option that takes over the rest (`-c`, `-m`), and before `-`: what follows is not looked at.
 */
#ifndef SP_CLI_OPTIONS_H
#define SP_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/nearest.h"

enum sp_option_type {
    SP_OPTION_END,      /* ends a table */
    SP_OPTION_FLAG,     /* bool */
    SP_OPTION_TEXT,     /* const char *, borrowed from argv; not empty */
    SP_OPTION_FILE,     /* the same, completed as a path */
    SP_OPTION_PROGRAM,  /* the same, completed as a program */
    SP_OPTION_POLICY,   /* the same, completed as a policy's name */
    SP_OPTION_DURATION, /* uint64_t, nanoseconds, > 0 */
    SP_OPTION_SIZE,     /* uint64_t, bytes, > 0 */
    SP_OPTION_COUNT,    /* uint64_t */
    SP_OPTION_NUMBER,   /* uint64_t, > 0 */
    SP_OPTION_WORD,     /* int, index into `words` */
    SP_OPTION_TEXTS, /* struct sp_texts; repeatable; one of `words` when there are any */
    SP_OPTION_MARKED, /* struct sp_marked; repeatable; several options fill one, each with its
                         `mark` */
};

#define SP_TEXTS_MAX 64u

struct sp_texts {
    const char *items[SP_TEXTS_MAX]; /* borrowed from argv */
    size_t count;
};

#define SP_MARKED_MAX 256u

struct sp_marked {
    struct {
        const char *text; /* borrowed from argv */
        int mark;
    } items[SP_MARKED_MAX];
    size_t count;
};

struct sp_option {
    const char *name; /* long form without dashes; NULL: short form only */
    char letter;      /* short form; 0: none */
    enum sp_option_type type;
    const char *argument;     /* what --help calls the value ("FILE"); NULL for flags */
    const char *help;         /* part of a sentence, lower case, no full stop */
    size_t offset;            /* of the field in the command's struct */
    const char *const *words; /* allowed values, NULL-terminated; NULL: any */
    int mark;                 /* MARKED: which of the options it was */
    const char
        *group;    /* options in a row with the same one have one line of help: this */
    bool paths;    /* the value is completed as a path */
    bool unlisted; /* not in --help; its group speaks of it */
    bool takes_rest; /* what follows belongs to the program; may be empty */
    bool hidden;     /* neither in help nor completed */
};

/* What a command is, as far as the command line goes. */
struct sp_command {
    const char *name;
    const char *summary;             /* one line for the list of commands */
    const char *usage;               /* what follows "sandpit NAME " */
    const char *description;         /* a paragraph for its --help; may be NULL */
    const char *example;             /* lines without indentation */
    const struct sp_option *options; /* ended by SP_OPTION_END; NULL: none */
    size_t values_size;              /* of the struct that the options fill */
    const void *defaults;            /* its initial value; NULL: zeros */
    int usage_status;                /* exit code for bad options */
    bool hidden;
    bool group; /* the commands whose names begin with its name and a blank are in it */
    bool options_anywhere; /* options may also follow other arguments (not for `run`) */
    const char
        *program; /* another program beside ours that has this command; it reads the
                              options itself. NULL: `main` */
    int (*main)(const void *values, int argc,
                char **argv); /* the arguments that are left */
};

/* Fills `ret_values` (values_size bytes) and moves the arguments that are left to the front
 * of `argv` (which starts after the command's name); `ret_count` is their number. *ret_help is
 * set when --help was asked for, and parsing ends there. Fails with SP_E_USAGE: unknown option
 * (with the nearest known one), missing or surplus value, value of the wrong form. */
int sp_options_parse(const struct sp_command *command, int argc, char **argv,
                     void *ret_values, int *ret_count, bool *ret_help,
                     struct sp_error *reterr) SP_MUST_CHECK;

#endif
