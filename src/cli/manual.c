/* The manual page, made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

/* Text for troff: backslashes and hyphens escaped, no line begins with a control character. */
static void print_text(const char *text)
{
    bool line_start = true;
    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '-')
            printf("\\-");
        else if (*text == '\\')
            printf("\\e");
        else
            putchar(*text);
        line_start = *text == '\n';
    }
}

static void print_option(const struct sp_option *option)
{
    printf(".TP\n");
    if (option->letter != 0)
        printf("\\fB\\-%c\\fR%s", option->letter, option->name != NULL ? ", " : "");
    if (option->name != NULL) {
        printf("\\fB\\-\\-");
        print_text(option->name);
        printf("\\fR");
    }
    if (option->argument != NULL)
        printf(" \\fI%s\\fR", option->argument);
    putchar('\n');
    print_text(option->help);
    putchar('\n');
}

static void print_usage(const struct sp_command *command)
{
    const char *usage = command->usage;
    do {
        size_t size = strcspn(usage, "\n");
        printf(".br\n\\fBsandpit ");
        print_text(command->name);
        printf("\\fR ");
        for (size_t i = 0; i < size; i++)
            print_text((char[]){usage[i], '\0'});
        putchar('\n');
        usage += size + (usage[size] == '\n');
    } while (*usage != '\0');
}

static void print_command(const struct sp_command *command)
{
    printf(".SS sandpit ");
    print_text(command->name);
    printf("\n");
    print_text(command->summary);
    printf(".\n");
    print_usage(command);
    if (command->description != NULL) {
        printf(".PP\n");
        print_text(command->description);
        printf("\n");
    }
    for (const struct sp_option *o = command->options;
         o != NULL && o->type != SP_OPTION_END; o++)
        if (!o->hidden)
            print_option(o);
    if (command->example != NULL) {
        printf(".PP\nExample:\n.PP\n.nf\n");
        print_text(command->example);
        printf("\n.fi\n");
    }
}

int sp_cli_manual(const void *values, int argc, char **argv)
{
    (void)values;
    (void)argc;
    (void)argv;
    printf(".TH SANDPIT 1 \"\" \"sandpit %s\"\n"
           ".SH NAME\n"
           "sandpit \\- run untrusted Python under a full audit trace and a policy\n"
           ".SH SYNOPSIS\n",
           SP_VERSION);
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden)
            print_usage(c);
    printf(".SH COMMANDS\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden)
            print_command(c);
    printf(".SH ENVIRONMENT\n"
           ".TP\n\\fBNO_COLOR\\fR\nNo colour when it is set, unless \\-\\-color says "
           "always.\n"
           ".TP\n\\fBSANDPIT_AGENTS\\fR\nFolder of the agents, when they are not "
           "installed "
           "beside the program.\n");
    return SP_EXIT_OK;
}
