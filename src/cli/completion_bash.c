/* The completion script for bash. */
#include <stdio.h>
#include <string.h>

#include "cli/completion.h"

static void bash_values(const struct sp_option *option)
{
    enum sp_value_kind kind = sp_completion_kind(option);
    if (kind == SP_VALUE_NONE || option->hidden)
        return;
    const char *bar = "";
    printf("        ");
    if (option->letter != 0) {
        printf("-%c", option->letter);
        bar = "|";
    }
    if (option->name != NULL)
        printf("%s--%s", bar, option->name);
    printf(") ");
    if (kind == SP_VALUE_WORDS) {
        printf("COMPREPLY=($(compgen %s-W '",
               option->type == SP_OPTION_POLICY ? "-f " : "");
        sp_completion_words(option);
        printf("' -- \"$current\"))");
    } else if (kind == SP_VALUE_FILES) {
        printf("COMPREPLY=($(compgen -f -- \"$current\"))");
    } else {
        printf("COMPREPLY=()");
    }
    printf("; return ;;\n");
}

static void bash_command(const struct sp_command *command)
{
    printf("    '%s')\n        case \"$previous\" in\n", command->name);
    for (const struct sp_option *o = sp_completion_options(command);
         o->type != SP_OPTION_END; o++)
        bash_values(o);
    printf("        esac\n        options='--help");
    for (const struct sp_option *o = sp_completion_options(command);
         o->type != SP_OPTION_END; o++)
        if (!o->hidden && o->name != NULL)
            printf(" --%s", o->name);
        else if (!o->hidden)
            printf(" -%c", o->letter);
    printf("'\n        ;;\n");
}

/* The second word of a group's command. */
static void bash_group(const struct sp_command *group)
{
    printf("    if [[ $command == %s ]]; then\n"
           "        if ((COMP_CWORD == 2)); then\n"
           "            COMPREPLY=($(compgen -W '",
           group->name);
    sp_completion_names_in(group);
    printf(" --help' -- \"$current\"))\n"
           "            return\n"
           "        fi\n"
           "        command=\"%s ${COMP_WORDS[2]}\"\n"
           "    fi\n",
           group->name);
}

void sp_completion_bash(void)
{
    printf("# bash completion for sandpit\n"
           "_sandpit() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]}\n"
           "    local previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local options\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '");
    sp_completion_commands();
    printf(" --help --version' -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    local command=${COMP_WORDS[1]}\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (c->group)
            bash_group(c);
    printf("    case \"$command\" in\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden && !c->group)
            bash_command(c);
    printf("    esac\n"
           "    case \"$command:$current\" in\n"
           "    *:-*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
           "    help:*) COMPREPLY=($(compgen -W '");
    sp_completion_commands();
    printf("' -- \"$current\")) ;;\n"
           "    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "
           "\"$current\")) ;;\n"
           "    'policy show':*) COMPREPLY=($(compgen -f -W '");
    sp_completion_policies();
    printf("' -- \"$current\")) ;;\n"
           "    'policy explain':*) COMPREPLY=($(compgen -f -W '");
    sp_completion_questions();
    printf("' -- \"$current\")) ;;\n"
           "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _sandpit sandpit\n");
}
