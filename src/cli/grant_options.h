/* The options that grant and deny by name, for each command that takes them. */
#ifndef SP_CLI_GRANT_OPTIONS_H
#define SP_CLI_GRANT_OPTIONS_H

#include "cli/options.h"
#include "run/grants.h"

/* All of them share the help of the first. */
static const char sp_grants_help[] =
    "for this run, before the policy's own rules (repeatable); --deny-... denies "
    "likewise";

#define SP_GRANT_OPTION(option, what, at, list, action, said, is_deny, is_path)        \
    {.name = (option),                                                                 \
     .type = SP_OPTION_MARKED,                                                         \
     .argument = (what),                                                               \
     .offset = (at),                                                                   \
     .mark = 2 * (list) + (action),                                                    \
     .help = (said),                                                                   \
     .group = (is_deny) ? NULL : sp_grants_help,                                       \
     .unlisted = (is_deny),                                                            \
     .paths = (is_path)}
#define SP_ALLOW_OPTION(name, what, at, list, said, path)                              \
    SP_GRANT_OPTION("allow-" name, what, at, list, SP_ALLOW, said, false, path)
#define SP_DENY_OPTION(name, what, at, list, said, path)                               \
    SP_GRANT_OPTION("deny-" name, what, at, list, SP_DENY, said, true, path)

/* `at`: the offset of the struct sp_marked that they fill. */
/* clang-format off */
#define SP_GRANT_OPTIONS(at)                                                                       \
    SP_ALLOW_OPTION("read", "PATH", at, SP_LIST_READ, "reading there is allowed", true),           \
    SP_ALLOW_OPTION("write", "PATH", at, SP_LIST_WRITE, "writing there is allowed", true),         \
    SP_ALLOW_OPTION("net", "HOST[:PORT]", at, SP_LIST_NETWORK, "connecting there is allowed", false), \
    SP_ALLOW_OPTION("run", "PROGRAM", at, SP_LIST_PROCESS, "it may be started", true),             \
    SP_ALLOW_OPTION("import", "NAME", at, SP_LIST_IMPORTS, "the module may be imported", false),   \
    SP_ALLOW_OPTION("env", "NAME", at, SP_LIST_ENV, "the variable is handed down", false),         \
    SP_DENY_OPTION("read", "PATH", at, SP_LIST_READ, "reading there is denied", true),             \
    SP_DENY_OPTION("write", "PATH", at, SP_LIST_WRITE, "writing there is denied", true),           \
    SP_DENY_OPTION("net", "HOST[:PORT]", at, SP_LIST_NETWORK, "connecting there is denied", false), \
    SP_DENY_OPTION("run", "PROGRAM", at, SP_LIST_PROCESS, "it may not be started", true),          \
    SP_DENY_OPTION("import", "NAME", at, SP_LIST_IMPORTS, "the module may not be imported", false), \
    SP_DENY_OPTION("env", "NAME", at, SP_LIST_ENV, "the variable is not handed down", false)
/* clang-format on */

/* The options as rules, into `to`; how many. */
static inline size_t sp_grants_given(const struct sp_marked *given,
                                     struct sp_grant to[SP_MARKED_MAX])
{
    for (size_t i = 0; i < given->count; i++)
        to[i] = (struct sp_grant){.list = (enum sp_list)(given->items[i].mark / 2),
                                  .action = (enum sp_action)(given->items[i].mark % 2),
                                  .pattern = given->items[i].text};
    return given->count;
}

#endif
