/* Help texts, made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

#define WIDTH        80u
#define HELP_COLUMN  29u
#define GROUP_COLUMN 6

/* Writes `text` from the current column on, wrapped before WIDTH, further lines indented to
 * `column`, and ends the line. A \1 is a blank that no line ends at. */
static void wrap(const char *text, size_t column)
{
    size_t at = column;
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        if (at > column && at + 1 + size > WIDTH) {
            printf("\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            putchar(' ');
            at++;
        }
        for (size_t i = 0; i < size; i++)
            putchar(text[i] == '\1' ? ' ' : text[i]);
        at += size;
        text += size;
        text += strspn(text, " ");
    }
    putchar('\n');
}

/* Prints each line of `text` after `indent`; the first one after `first`. */
static void lines(const char *text, const char *first, const char *indent)
{
    for (const char *prefix = first; *text != '\0'; prefix = indent) {
        size_t size = strcspn(text, "\n");
        printf("%s%.*s\n", prefix, (int)size, text);
        text += size + (text[size] == '\n');
    }
}

/* The options of one group, as "--allow-read PATH, --allow-write PATH", and their help. Returns the
 * last of them. */
static const struct sp_option *group_lines(const struct sp_option *first)
{
    char text[600] = "";
    const struct sp_option *o = first;
    for (;; o++) {
        size_t n = strlen(text);
        bool more = o[1].group == first->group;
        snprintf(text + n, sizeof text - n, "--%s%s%s%s", o->name,
                 o->argument != NULL ? "\1" : "",
                 o->argument != NULL ? o->argument : "", more ? ", " : "");
        if (!more)
            break;
    }
    printf("%*s", GROUP_COLUMN, "");
    wrap(text, GROUP_COLUMN);
    printf("%*s", (int)HELP_COLUMN, "");
    wrap(first->group, HELP_COLUMN);
    return o;
}

static void option_line(char letter, const char *name, const char *argument,
                        const char *help)
{
    char left[80];
    const char *space = argument != NULL ? " " : "";
    const char *value = argument != NULL ? argument : "";
    if (name == NULL)
        snprintf(left, sizeof left, "-%c%s%s", letter, space, value);
    else if (letter != 0)
        snprintf(left, sizeof left, "-%c, --%s%s%s", letter, name, space, value);
    else
        snprintf(left, sizeof left, "    --%s%s%s", name, space, value);
    printf("  %-*s", (int)(HELP_COLUMN - 2), left);
    if (strlen(left) > HELP_COLUMN - 2)
        printf("\n%*s", (int)HELP_COLUMN, "");
    wrap(help, HELP_COLUMN);
}

static void group_commands(const struct sp_command *group)
{
    printf("\ncommands:\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (sp_command_is_in(group, c))
            printf("  %-12s%s\n", c->name + strlen(group->name) + 1, c->summary);
}

void sp_help_command(const struct sp_command *command)
{
    char first[64];
    char further[64];
    snprintf(first, sizeof first, "usage: sandpit %s ", command->name);
    snprintf(further, sizeof further, "       sandpit %s ", command->name);
    lines(*command->usage != '\0' ? command->usage : "\n", first, further);
    if (command->description != NULL) {
        putchar('\n');
        lines(command->description, "", "");
    }
    if (command->group)
        group_commands(command);
    printf("\noptions:\n");
    for (const struct sp_option *o = command->options;
         o != NULL && o->type != SP_OPTION_END; o++)
        if (o->group != NULL)
            o = group_lines(o);
        else if (!o->hidden && !o->unlisted)
            option_line(o->letter, o->name, o->argument, o->help);
    option_line('h', "help", NULL, "show this");
    if (command->example != NULL) {
        printf("\nexample:\n");
        lines(command->example, "  ", "  ");
    }
}

void sp_help_program(void)
{
    printf("usage: sandpit COMMAND [options] [arguments]\n\n"
           "Runs untrusted Python under a full audit trace and stops what a policy "
           "forbids.\n\n"
           "commands:\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden && strchr(c->name, ' ') == NULL)
            printf("  %-12s%s\n", c->name, c->summary);
    printf("\noptions:\n"
           "  --version   show the version\n"
           "  -h, --help  show this; after a command, its own help\n"
           "\nexample:\n"
           "  sandpit run script.py\n"
           "  sandpit show script.sptrace\n");
}

int sp_cli_help(const void *values, int argc, char **argv)
{
    (void)values;
    if (argc == 0) {
        sp_help_program();
        return SP_EXIT_OK;
    }
    const struct sp_command *command = sp_command_find(argv[0]);
    if (command == NULL)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "there is no command '%s' (see sandpit --help)", argv[0]);
    if (command->group && argc > 1 && sp_command_find_in(command, argv[1]) != NULL)
        command = sp_command_find_in(command, argv[1]);
    if (command->program != NULL) {
        char flag[] = "--help";
        return sp_exec_beside(command, (char *[]){NULL, argv[0], flag, NULL});
    }
    sp_help_command(command);
    return SP_EXIT_OK;
}
