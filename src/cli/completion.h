/* What the completion scripts of all shells are made of. Internal to src/cli. */
#ifndef SP_CLI_COMPLETION_H
#define SP_CLI_COMPLETION_H

#include "cli/commands.h"

/* What a value can be. */
enum sp_value_kind {
    SP_VALUE_NONE,
    SP_VALUE_ANY,
    SP_VALUE_FILES,
    SP_VALUE_WORDS, /* of the option, or the policies' names */
};

enum sp_value_kind sp_completion_kind(const struct sp_option *option);
void sp_completion_words(const struct sp_option *option);
const struct sp_option *sp_completion_options(const struct sp_command *command);

/* The commands at the top (`group` NULL), or those of a group by what stands behind its name. */
bool sp_completion_listed(const struct sp_command *group,
                          const struct sp_command *command);
const char *sp_completion_short(const struct sp_command *command);
void sp_completion_names_in(const struct sp_command *group);
void sp_completion_commands(void);

/* What the arguments of a command are, where they are no files. */
bool sp_completion_takes_policy(const struct sp_command *command);
bool sp_completion_takes_question(const struct sp_command *command);
void sp_completion_policies(void);
void sp_completion_questions(void);

/* Text inside single quotes; for zsh with what its _arguments reads escaped. */
void sp_completion_description(const char *text, bool zsh);

void sp_completion_bash(void);
void sp_completion_zsh(void);
void sp_completion_fish(void);

#endif
