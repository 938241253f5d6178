/* Completion scripts for bash, zsh and fish, made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "policy/policy.h"

/* ---- what a value can be ---------------------------------------------------------------- */

enum value_kind {
    VALUE_NONE,
    VALUE_ANY,
    VALUE_FILES,
    VALUE_WORDS, /* of the option, or the policies' names */
};

static enum value_kind kind_of(const struct sp_option *option)
{
    switch (option->type) {
    case SP_OPTION_FLAG:
    case SP_OPTION_END:
        return VALUE_NONE;
    case SP_OPTION_FILE:
    case SP_OPTION_PROGRAM:
        return VALUE_FILES;
    case SP_OPTION_POLICY:
        return VALUE_WORDS;
    default:
        if (option->paths)
            return VALUE_FILES;
        return option->words != NULL ? VALUE_WORDS : VALUE_ANY;
    }
}

static void print_words(const struct sp_option *option)
{
    if (option->type == SP_OPTION_POLICY) {
        const struct sp_policy *policy;
        for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++)
            printf("%s%s", i > 0 ? " " : "", sp_policy_text(policy, policy->name));
        return;
    }
    for (size_t i = 0; option->words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", option->words[i]);
}

static void print_command_names(void)
{
    const char *space = "";
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (c->hidden)
            continue;
        printf("%s%s", space, c->name);
        space = " ";
    }
}

/* Text inside single quotes of bash, zsh and fish alike: ours has no quotes to escape, and
 * brackets and colons, which zsh's _arguments reads, get a backslash there. */
static void print_description(const char *text, bool zsh)
{
    for (; *text != '\0'; text++) {
        if (zsh && strchr("[]:", *text) != NULL)
            putchar('\\');
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
    }
}

static const struct sp_option no_options[] = {{.type = SP_OPTION_END}};

static const struct sp_option *options_of(const struct sp_command *command)
{
    return command->options != NULL ? command->options : no_options;
}

/* ---- bash ------------------------------------------------------------------------------- */

static void bash_values(const struct sp_option *option)
{
    enum value_kind kind = kind_of(option);
    if (kind == VALUE_NONE || option->hidden)
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
    if (kind == VALUE_WORDS) {
        printf("COMPREPLY=($(compgen -W '");
        print_words(option);
        printf("' -- \"$current\"))");
    } else if (kind == VALUE_FILES) {
        printf("COMPREPLY=($(compgen -f -- \"$current\"))");
    } else {
        printf("COMPREPLY=()");
    }
    printf("; return ;;\n");
}

static void bash_command(const struct sp_command *command)
{
    printf("    %s)\n        case \"$previous\" in\n", command->name);
    for (const struct sp_option *o = options_of(command); o->type != SP_OPTION_END; o++)
        bash_values(o);
    printf("        esac\n        options='--help");
    for (const struct sp_option *o = options_of(command); o->type != SP_OPTION_END; o++)
        if (!o->hidden && o->name != NULL)
            printf(" --%s", o->name);
        else if (!o->hidden)
            printf(" -%c", o->letter);
    printf("'\n        ;;\n");
}

static void print_bash(void)
{
    printf("# bash completion for sandpit\n"
           "_sandpit() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]}\n"
           "    local previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local options\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '");
    print_command_names();
    printf(" --help --version' -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    case \"${COMP_WORDS[1]}\" in\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden)
            bash_command(c);
    printf("    esac\n"
           "    case \"${COMP_WORDS[1]}:$current\" in\n"
           "    *:-*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
           "    help:*) COMPREPLY=($(compgen -W '");
    print_command_names();
    printf("' -- \"$current\")) ;;\n"
           "    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "
           "\"$current\")) ;;\n"
           "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _sandpit sandpit\n");
}

/* ---- zsh -------------------------------------------------------------------------------- */

static void zsh_spec(const struct sp_option *option, const char *dashes,
                     const char *name)
{
    bool repeatable =
        option->type == SP_OPTION_TEXTS || option->type == SP_OPTION_MARKED;
    printf("            '%s%s%s[", repeatable ? "*" : "", dashes, name);
    print_description(option->help, true);
    printf("]");
    switch (kind_of(option)) {
    case VALUE_NONE:
        break;
    case VALUE_ANY:
        printf(":%s: ", option->argument);
        break;
    case VALUE_FILES:
        printf(":%s:_files", option->argument);
        break;
    case VALUE_WORDS:
        printf(":%s:(", option->argument);
        print_words(option);
        printf(")");
        break;
    }
    printf("' \\\n");
}

static void zsh_command(const struct sp_command *command)
{
    printf("    %s)\n        _arguments \\\n", command->name);
    for (const struct sp_option *o = options_of(command); o->type != SP_OPTION_END;
         o++) {
        char letter[2] = {o->letter, '\0'};
        if (o->hidden)
            continue;
        if (o->letter != 0)
            zsh_spec(o, "-", letter);
        if (o->name != NULL)
            zsh_spec(o, "--", o->name);
    }
    printf("            '--help[show help]' \\\n");
    if (command->main == sp_cli_completion) {
        printf("            '1:shell:(bash zsh fish)'\n");
    } else if (command->main == sp_cli_help) {
        printf("            '1:command:(");
        print_command_names();
        printf(")'\n");
    } else {
        printf("            '*:file:_files'\n");
    }
    printf("        ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef sandpit\n"
           "_sandpit() {\n"
           "    local -a commands\n"
           "    if ((CURRENT == 2)); then\n"
           "        commands=(\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (c->hidden)
            continue;
        printf("            '%s:", c->name);
        print_description(c->summary, true);
        printf("'\n");
    }
    printf("        )\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=${words[2]}\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $command in\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden)
            zsh_command(c);
    printf("    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _sandpit ]]; then\n"
           "    _sandpit \"$@\"\n"
           "else\n"
           "    compdef _sandpit sandpit\n"
           "fi\n");
}

/* ---- fish ------------------------------------------------------------------------------- */

static void fish_option(const struct sp_command *command,
                        const struct sp_option *option)
{
    enum value_kind kind = kind_of(option);
    printf("complete -c sandpit -n '__fish_seen_subcommand_from %s'", command->name);
    if (option->letter != 0)
        printf(" -s %c", option->letter);
    if (option->name != NULL)
        printf(" -l %s", option->name);
    if (kind != VALUE_NONE)
        printf(kind == VALUE_FILES ? " -r -F" : " -x");
    if (kind == VALUE_WORDS) {
        printf(" -a '");
        print_words(option);
        printf("'");
    }
    printf(" -d '");
    print_description(option->help, false);
    printf("'\n");
}

static void print_fish(void)
{
    printf("# fish completion for sandpit\n"
           "complete -c sandpit -n __fish_use_subcommand -f -l version -d 'show the "
           "version'\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (c->hidden)
            continue;
        printf("complete -c sandpit -n __fish_use_subcommand -f -a %s -d '", c->name);
        print_description(c->summary, false);
        printf("'\n");
        for (const struct sp_option *o = options_of(c); o->type != SP_OPTION_END; o++)
            if (!o->hidden)
                fish_option(c, o);
    }
    printf("complete -c sandpit -l help -s h -d 'show help'\n"
           "complete -c sandpit -n '__fish_seen_subcommand_from completion' -f"
           " -a 'bash zsh fish'\n"
           "complete -c sandpit -n '__fish_seen_subcommand_from help' -f -a '");
    print_command_names();
    printf("'\n");
}

int sp_cli_completion(const void *values, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    (void)values;
    if (argc != 1)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "completion needs one shell: bash, zsh or fish");
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, argv[0]) != 0)
            continue;
        shells[i].print();
        return SP_EXIT_OK;
    }
    return sp_cli_error(SP_EXIT_BAD_INPUT,
                        "there is no completion for '%s', only for bash, "
                        "zsh and fish",
                        argv[0]);
}
