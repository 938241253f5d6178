/* The commands of `sandpit policy`. */
#ifndef SP_CLI_POLICY_H
#define SP_CLI_POLICY_H

#include <stdbool.h>

#include "base/buffer.h"
#include "cli/options.h"
#include "policy/policy.h"
#include "policy/problem.h"

struct sp_policy_options {
    bool json;
    const char *policy; /* explain; NULL: the default one */
    const char *python;
    const char *script; /* explain: the program, for {script} */
    struct sp_marked grants;
};

extern const struct sp_option sp_policy_plain_table[];
extern const struct sp_option sp_policy_check_table[];
extern const struct sp_option sp_policy_explain_table[];

int sp_cli_policy_list(const void *values, int argc, char **argv);
int sp_cli_policy_show(const void *values, int argc, char **argv);
int sp_cli_policy_check(const void *values, int argc, char **argv);
int sp_cli_policy_explain(const void *values, int argc, char **argv);
int sp_cli_policy_schema(const void *values, int argc, char **argv);
int sp_cli_policy_spec(const void *values, int argc, char **argv);

/* A policy that cannot be read: tells what is wrong, as the options say. Returns the exit code. */
int sp_cli_policy_failed(const struct sp_policy_options *options,
                         const struct sp_error *error,
                         const struct sp_problems *problems);

/* Writes out a buffer; the exit code. */
int sp_cli_policy_print(const struct sp_buffer *text, int status);

#endif
