#include "cli/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/size.h"

/* ---- looking up ------------------------------------------------------------------------- */

static const struct sp_option *find_long(const struct sp_option *options,
                                         const char *name, size_t size)
{
    for (; options != NULL && options->type != SP_OPTION_END; options++)
        if (options->name != NULL && strlen(options->name) == size &&
            memcmp(options->name, name, size) == 0)
            return options;
    return NULL;
}

static const struct sp_option *find_letter(const struct sp_option *options, char letter)
{
    for (; options != NULL && options->type != SP_OPTION_END; options++)
        if (options->letter == letter)
            return options;
    return NULL;
}

#define OPTIONS_MAX 64u

static int fail_unknown(const struct sp_command *command, const char *argument,
                        struct sp_error *reterr)
{
    const char *names[OPTIONS_MAX + 2] = {"help"};
    size_t count = 1;
    for (const struct sp_option *o = command->options;
         o != NULL && o->type != SP_OPTION_END; o++)
        if (o->name != NULL && !o->hidden && count <= OPTIONS_MAX)
            names[count++] = o->name;
    char name[SP_NAME_MAX_COMPARED + 1] = "";
    size_t size = strcspn(argument + 2, "=");
    if (argument[1] == '-' && size < sizeof name)
        memcpy(name, argument + 2, size);
    const char *nearest = *name != '\0' ? sp_nearest_name(name, names) : NULL;
    if (nearest != NULL)
        return sp_fail(reterr, SP_E_USAGE,
                       "%s knows no option '%s' (did you mean --%s?)", command->name,
                       argument, nearest);
    return sp_fail(reterr, SP_E_USAGE,
                   "%s knows no option '%s' (see sandpit %s --help)", command->name,
                   argument, command->name);
}

/* ---- storing values --------------------------------------------------------------------- */

/* An option as the user wrote it, for messages: "--policy" or "-o". */
struct spelling {
    char text[64];
};

static struct spelling spelling_of(const struct sp_option *option)
{
    struct spelling s = {{'-', option->letter}};
    if (option->name != NULL) {
        size_t size = strlen(option->name);
        s.text[1] = '-';
        memcpy(s.text + 2, option->name, size < 60 ? size : 60);
    }
    return s;
}

/* Index of `value` among the option's words, or a failure that lists them. */
static int find_word(const struct sp_option *option, const char *value, int *ret_index,
                     struct sp_error *reterr)
{
    char list[200] = "";
    size_t used = 0;
    for (int i = 0; option->words[i] != NULL; i++) {
        const char *word = option->words[i];
        if (strcmp(word, value) == 0) {
            *ret_index = i;
            return 0;
        }
        size_t size = strlen(word);
        if (used + size + 3 > sizeof list)
            continue;
        if (used > 0) {
            memcpy(list + used, ", ", 2);
            used += 2;
        }
        memcpy(list + used, word, size + 1);
        used += size;
    }
    const char *nearest = sp_nearest_name(value, option->words);
    return sp_fail(reterr, SP_E_USAGE, "%s: '%s' is none of %s%s%s%s",
                   spelling_of(option).text, value, list,
                   nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

static int store_count(const struct sp_option *option, const char *value,
                       uint64_t *field, struct sp_error *reterr)
{
    char *end = NULL;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (errno != 0 || *end != '\0' || value[strspn(value, "0123456789")] != '\0')
        return sp_fail(reterr, SP_E_USAGE, "%s: '%s' is not a whole number",
                       spelling_of(option).text, value);
    *field = n;
    return 0;
}

static int store_duration(const struct sp_option *option, const char *value,
                          uint64_t *field, struct sp_error *reterr)
{
    struct sp_error error = {0};
    if (sp_duration_parse(value, field, &error) != 0)
        return sp_fail(reterr, SP_E_USAGE, "%s: %s", spelling_of(option).text,
                       error.message);
    return 0;
}

static int store_size(const struct sp_option *option, const char *value,
                      uint64_t *field, struct sp_error *reterr)
{
    struct sp_error error = {0};
    if (sp_size_parse(value, field, &error) != 0)
        return sp_fail(reterr, SP_E_USAGE, "%s: %s", spelling_of(option).text,
                       error.message);
    return 0;
}

static int store_number(const struct sp_option *option, const char *value,
                        uint64_t *field, struct sp_error *reterr)
{
    int code = store_count(option, value, field, reterr);
    if (code == 0 && *field == 0)
        return sp_fail(reterr, SP_E_USAGE, "%s: '%s' is none at all",
                       spelling_of(option).text, value);
    return code;
}

static int store_texts(const struct sp_option *option, const char *value,
                       struct sp_texts *field, struct sp_error *reterr)
{
    int index = 0;
    if (option->words != NULL && find_word(option, value, &index, reterr) != 0)
        return SP_E_USAGE;
    if (field->count >= SP_TEXTS_MAX)
        return sp_fail(reterr, SP_E_USAGE, "%s is given more than %u times",
                       spelling_of(option).text, SP_TEXTS_MAX);
    field->items[field->count++] = value;
    return 0;
}

static int store_marked(const struct sp_option *option, const char *value,
                        struct sp_marked *field, struct sp_error *reterr)
{
    if (field->count >= SP_MARKED_MAX)
        return sp_fail(reterr, SP_E_USAGE,
                       "%s: more than %u such options: put them into a file",
                       spelling_of(option).text, SP_MARKED_MAX);
    field->items[field->count].text = value;
    field->items[field->count++].mark = option->mark;
    return 0;
}

/* Writes one option's value into the command's struct. */
static int store(const struct sp_option *option, const char *value, void *values,
                 struct sp_error *reterr)
{
    void *field = (char *)values + option->offset;
    if (option->type == SP_OPTION_FLAG) {
        *(bool *)field = true;
        return 0;
    }
    SP_BUG_ON(value == NULL);
    if (*value == '\0' && !option->takes_rest)
        return sp_fail(reterr, SP_E_USAGE, "%s: the %s is empty",
                       spelling_of(option).text, option->argument);
    switch (option->type) {
    case SP_OPTION_DURATION:
        return store_duration(option, value, field, reterr);
    case SP_OPTION_SIZE:
        return store_size(option, value, field, reterr);
    case SP_OPTION_NUMBER:
        return store_number(option, value, field, reterr);
    case SP_OPTION_COUNT:
        return store_count(option, value, field, reterr);
    case SP_OPTION_WORD:
        return find_word(option, value, field, reterr);
    case SP_OPTION_TEXTS:
        return store_texts(option, value, field, reterr);
    case SP_OPTION_MARKED:
        return store_marked(option, value, field, reterr);
    default:
        *(const char **)field = value;
        return 0;
    }
}

/* ---- parsing ---------------------------------------------------------------------------- */

struct parser {
    const struct sp_command *command;
    int argc;
    char **argv;
    int next; /* index of the next argument to look at */
    void *values;
    bool help;
    bool rest; /* what follows belongs to the program */
};

/* The value of an option that stands in the next argument. */
static int next_value(struct parser *p, const struct sp_option *option,
                      const char **ret_value, struct sp_error *reterr)
{
    if (p->next >= p->argc)
        return sp_fail(reterr, SP_E_USAGE, "%s needs a value: %s",
                       spelling_of(option).text, option->argument);
    *ret_value = p->argv[p->next++];
    return 0;
}

static int parse_long(struct parser *p, const char *argument, struct sp_error *reterr)
{
    const char *name = argument + 2;
    size_t size = strcspn(name, "=");
    const char *value = name[size] == '=' ? name + size + 1 : NULL;
    if (strcmp(name, "help") == 0) {
        p->help = true;
        return 0;
    }
    const struct sp_option *option = find_long(p->command->options, name, size);
    if (option == NULL)
        return fail_unknown(p->command, argument, reterr);
    if (option->type == SP_OPTION_FLAG && value != NULL)
        return sp_fail(reterr, SP_E_USAGE, "--%s takes no value", option->name);
    if (option->type != SP_OPTION_FLAG && value == NULL &&
        next_value(p, option, &value, reterr) != 0)
        return SP_E_USAGE;
    p->rest = option->takes_rest;
    return store(option, value, p->values, reterr);
}

/* "-q", "-qo FILE", "-oFILE". */
static int parse_letters(struct parser *p, const char *argument,
                         struct sp_error *reterr)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        if (*letter == 'h') {
            p->help = true;
            return 0;
        }
        const struct sp_option *option = find_letter(p->command->options, *letter);
        if (option == NULL)
            return fail_unknown(p->command, argument, reterr);
        if (option->type == SP_OPTION_FLAG) {
            store(option, NULL, p->values, NULL);
            continue;
        }
        const char *value = letter[1] != '\0' ? letter + 1 : NULL;
        if (value == NULL && next_value(p, option, &value, reterr) != 0)
            return SP_E_USAGE;
        p->rest = option->takes_rest;
        return store(option, value, p->values, reterr);
    }
    return 0;
}

static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

int sp_options_parse(const struct sp_command *command, int argc, char **argv,
                     void *ret_values, int *ret_count, bool *ret_help,
                     struct sp_error *reterr)
{
    struct parser p = {command, argc, argv, 0, ret_values, false, false};
    int kept = 0;
    if (command->defaults != NULL)
        memcpy(ret_values, command->defaults, command->values_size);
    else if (command->values_size > 0)
        memset(ret_values, 0, command->values_size);

    while (p.next < argc && !p.rest && !p.help) {
        char *argument = argv[p.next];
        if (!is_option(argument)) {
            if (!command->options_anywhere)
                break;
            argv[kept++] = argument;
            p.next++;
            continue;
        }
        p.next++;
        if (strcmp(argument, "--") == 0)
            break;
        int r = argument[1] == '-' ? parse_long(&p, argument, reterr)
                                   : parse_letters(&p, argument, reterr);
        if (r != 0)
            return r;
    }
    while (p.next < argc)
        argv[kept++] = argv[p.next++];
    argv[kept] = NULL;
    *ret_count = kept;
    *ret_help = p.help;
    return 0;
}
