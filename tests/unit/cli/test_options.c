#include "requires.h"

#include "cli/options.h"

struct values {
    bool loud;
    bool quiet;
    const char *file;
    const char *code;
    uint64_t time_ns;
    uint64_t count;
    int level;
    struct sp_texts layers;
};

#define FIELD(name) offsetof(struct values, name)

static const char *const levels[] = {"off", "folded", "all", NULL};
static const char *const layers[] = {"landlock", "agent", NULL};

static const struct sp_option options[] = {
    {.name = "loud", .letter = 'l', .type = SP_OPTION_FLAG, .offset = FIELD(loud)},
    {.name = "quiet", .letter = 'q', .type = SP_OPTION_FLAG, .offset = FIELD(quiet)},
    {.name = "file",
     .letter = 'f',
     .type = SP_OPTION_FILE,
     .argument = "FILE",
     .offset = FIELD(file)},
    {.letter = 'c',
     .type = SP_OPTION_TEXT,
     .argument = "CODE",
     .offset = FIELD(code),
     .takes_rest = true},
    {.name = "time",
     .type = SP_OPTION_DURATION,
     .argument = "TIME",
     .offset = FIELD(time_ns)},
    {.name = "count", .type = SP_OPTION_COUNT, .argument = "N", .offset = FIELD(count)},
    {.name = "level",
     .type = SP_OPTION_WORD,
     .argument = "LEVEL",
     .offset = FIELD(level),
     .words = levels},
    {.name = "layer",
     .type = SP_OPTION_TEXTS,
     .argument = "LAYER",
     .offset = FIELD(layers),
     .words = layers},
    {.type = SP_OPTION_END},
};

static const struct values defaults = {.level = 1};

static const struct sp_command command = {
    .name = "thing",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
};

struct parsed {
    int result;
    struct values values;
    int count;
    bool help;
    char *argv[16];
    struct sp_error error;
};

static struct parsed parse(const struct sp_command *what, const char *const *arguments)
{
    struct parsed p = {0};
    int argc = 0;
    for (; arguments[argc] != NULL; argc++)
        p.argv[argc] = (char *)(uintptr_t)arguments[argc];
    p.result =
        sp_options_parse(what, argc, p.argv, &p.values, &p.count, &p.help, &p.error);
    return p;
}

#define PARSE(...) parse(&command, (const char *const[]){__VA_ARGS__, NULL})

static void test_options_of_every_type_fill_their_field(void **state)
{
    (void)state;
    struct parsed p = PARSE("--loud", "--file", "a", "--time=2s", "--count", "7",
                            "--level", "all", "--layer=agent", "--layer", "landlock");
    assert_int_equal(p.result, 0);
    assert_true(p.values.loud);
    assert_false(p.values.quiet);
    assert_string_equal(p.values.file, "a");
    assert_int_equal(p.values.time_ns, 2000000000u);
    assert_int_equal(p.values.count, 7);
    assert_int_equal(p.values.level, 2);
    assert_int_equal(p.values.layers.count, 2);
    assert_string_equal(p.values.layers.items[0], "agent");
    assert_int_equal(p.count, 0);
}

static void test_options_not_given_have_their_defaults(void **state)
{
    (void)state;
    struct parsed p = PARSE("script");
    assert_int_equal(p.values.level, 1);
    assert_null(p.values.file);
}

static void test_options_after_the_first_argument_are_the_programs(void **state)
{
    (void)state;
    struct parsed p = PARSE("-q", "script", "--loud", "--", "--nonsense");
    assert_int_equal(p.result, 0);
    assert_true(p.values.quiet);
    assert_false(p.values.loud);
    assert_int_equal(p.count, 4);
    assert_string_equal(p.argv[0], "script");
    assert_string_equal(p.argv[2], "--");
    assert_null(p.argv[4]);
}

static void test_options_end_at_two_dashes_which_are_taken(void **state)
{
    (void)state;
    struct parsed p = PARSE("-q", "--", "-x");
    assert_int_equal(p.count, 1);
    assert_string_equal(p.argv[0], "-x");
}

static void test_options_single_dash_is_an_argument(void **state)
{
    (void)state;
    struct parsed p = PARSE("-", "-q");
    assert_int_equal(p.count, 2);
    assert_string_equal(p.argv[0], "-");
}

static void test_options_that_take_the_rest_leave_it_alone(void **state)
{
    (void)state;
    struct parsed p = PARSE("-c", "pass", "--", "-q", "--nonsense");
    assert_int_equal(p.result, 0);
    assert_string_equal(p.values.code, "pass");
    assert_false(p.values.quiet);
    assert_int_equal(p.count, 3);
    assert_string_equal(p.argv[0], "--");
}

static void test_options_letters_can_stand_together(void **state)
{
    (void)state;
    struct parsed p = PARSE("-lqf", "a", "x");
    assert_true(p.values.loud && p.values.quiet);
    assert_string_equal(p.values.file, "a");
    p = PARSE("-qfa", "x");
    assert_string_equal(p.values.file, "a");
}

static void test_options_anywhere_collects_the_arguments(void **state)
{
    struct sp_command anywhere = command;
    anywhere.options_anywhere = true;
    (void)state;
    struct parsed p =
        parse(&anywhere, (const char *const[]){"x", "-q", "y", "--", "-l", NULL});
    assert_int_equal(p.result, 0);
    assert_true(p.values.quiet);
    assert_false(p.values.loud);
    assert_int_equal(p.count, 3);
    assert_string_equal(p.argv[1], "y");
    assert_string_equal(p.argv[2], "-l");
}

static void test_options_help_ends_parsing(void **state)
{
    (void)state;
    struct parsed p = PARSE("--help", "--nonsense");
    assert_int_equal(p.result, 0);
    assert_true(p.help);
    assert_true(PARSE("-qh").help);
    assert_false(PARSE("x", "--help").help);
}

static void test_options_errors_name_what_is_wrong(void **state)
{
    static const struct {
        const char *arguments[4];
        const char *says;
    } cases[] = {
        {{"--luod"}, "did you mean --loud?"},
        {{"--qui"}, "did you mean --quiet?"},
        {{"--zzzzzz"}, "--zzzzzz"},
        {{"--=x"}, "--=x"},
        {{"---"}, "---"},
        {{"-z"}, "'-z'"},
        {{"-qz"}, "'-qz'"},
        {{"--loud=yes"}, "--loud takes no value"},
        {{"--file"}, "--file needs a value: FILE"},
        {{"-f"}, "needs a value: FILE"},
        {{"--file="}, "--file: the FILE is empty"},
        {{"--count", "-1"}, "'-1' is not a whole number"},
        {{"--count", "99999999999999999999"}, "whole number"},
        {{"--count", "7x"}, "whole number"},
        {{"--time", "soon"}, "--time: 'soon' is not a duration"},
        {{"--level", "ful"}, "off, folded, all"},
        {{"--layer", "agnet"}, "did you mean agent?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parsed p = parse(&command, cases[i].arguments);
        print_message("# %s: %s\n", cases[i].arguments[0], p.error.message);
        assert_int_equal(p.result, SP_E_USAGE);
        assert_non_null(strstr(p.error.message, cases[i].says));
    }
}

static void test_options_repeated_too_often_are_refused(void **state)
{
    const char *arguments[2 * SP_TEXTS_MAX + 4];
    char *argv[2 * SP_TEXTS_MAX + 4];
    struct values values;
    int count = 0;
    int argc = 0;
    bool help = false;
    (void)state;
    for (size_t i = 0; i < SP_TEXTS_MAX + 1; i++)
        arguments[argc++] = "--layer=agent";
    arguments[argc] = NULL;
    memcpy(argv, arguments, sizeof argv);
    assert_int_equal(
        sp_options_parse(&command, argc, argv, &values, &count, &help, NULL),
        SP_E_USAGE);
    argv[argc - 1] = NULL;
    assert_int_equal(
        sp_options_parse(&command, argc - 1, argv, &values, &count, &help, NULL), 0);
    assert_int_equal(values.layers.count, SP_TEXTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_of_every_type_fill_their_field),
        cmocka_unit_test(test_options_not_given_have_their_defaults),
        cmocka_unit_test(test_options_after_the_first_argument_are_the_programs),
        cmocka_unit_test(test_options_end_at_two_dashes_which_are_taken),
        cmocka_unit_test(test_options_single_dash_is_an_argument),
        cmocka_unit_test(test_options_that_take_the_rest_leave_it_alone),
        cmocka_unit_test(test_options_letters_can_stand_together),
        cmocka_unit_test(test_options_anywhere_collects_the_arguments),
        cmocka_unit_test(test_options_help_ends_parsing),
        cmocka_unit_test(test_options_errors_name_what_is_wrong),
        cmocka_unit_test(test_options_repeated_too_often_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
