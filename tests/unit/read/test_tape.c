#include "requires.h"

#include <stdio.h>
#include <string.h>

#include "read/tape.h"
#include "trace/grammar.h"
#include "trace/lines.h"

static struct sp_tape tape;
static char buffer[4096];

static enum sp_tape_result parse(const char *line)
{
    memset(buffer, 0, sizeof buffer);
    const int n = snprintf(buffer, sizeof buffer - SP_LINES_PADDING, "%s\n", line);
    return sp_tape_parse(&tape, buffer, (size_t)n - 1);
}

static int set_up(void **state)
{
    (void)state;
    sp_tape_init(&tape);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sp_tape_release(&tape);
    return 0;
}

static void test_tape_values_have_their_types(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\"i\":-5,\"u\":18446744073709551615,\"r\":1.5,\"t\":true,\"n\":null,"
              "\"s\":\"text\",\"a\":[1,[2],{\"x\":3}],\"last\":9}"),
        SP_TAPE_OK);
    assert_int_equal(tape.nodes[0].type, SP_JSON_OBJECT);
    assert_int_equal(tape.nodes[0].size, 8);
    assert_int_equal(tape.nodes[0].next, tape.count);
    assert_int_equal(sp_tape_int(&tape, "i", 0), -5);
    assert_int_equal(sp_tape_int(&tape, "last", 0), 9);
    assert_int_equal(sp_tape_int(&tape, "absent", 77), 77);
    assert_int_equal(sp_tape_int(&tape, "s", 77), 77);
    assert_true(tape.nodes[sp_tape_find(&tape, 0, "u")].natural == UINT64_MAX);
    assert_true(tape.nodes[sp_tape_find(&tape, 0, "r")].real == 1.5);
    assert_true(sp_tape_true(&tape, "t"));
    assert_int_equal(tape.nodes[sp_tape_find(&tape, 0, "n")].type, SP_JSON_NULL);
    assert_true(sp_node_is(sp_tape_text(&tape, "s"), "text"));
    const uint32_t array = sp_tape_find(&tape, 0, "a");
    assert_int_equal(tape.nodes[array].size, 3);
    assert_int_equal(tape.nodes[array].next - array, 7);
}

static void test_tape_strings_are_the_bytes_that_were_recorded(void **state)
{
    static const struct {
        const char *json;
        const char *bytes;
    } cases[] = {
        {"\\udcff\\udc80", "\xff\x80"},
        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
        {"\\u00e9\\u20ac", "\xc3\xa9\xe2\x82\xac"},
        {"\\ud800x", "\xed\xa0\x80x"},
        {"\\ud800\\u0041", "\xed\xa0\x80"
                           "A"},
        {"\\udfff", "\xed\xbf\xbf"},
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
        {"plain \xc3\xa9", "plain \xc3\xa9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "{\"s\" : \"%s\" }", cases[i].json);
        print_message("# %s\n", line);
        assert_int_equal(parse(line), SP_TAPE_OK);
        assert_true(sp_node_is(sp_tape_text(&tape, "s"), cases[i].bytes));
    }
}

static void test_tape_malformed_lines_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "x",
        "[]",
        "1",
        "{",
        "{}}",
        "{} {}",
        "{\"a\":01}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":18446744073709551616}",
        "{\"a\":[1,]}",
        "{\"a\":tru}",
        "{\"a\":nul}",
        "{\"a\" 1}",
        "{\"a\":\"x}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("# %s\n", cases[i]);
        assert_int_equal(parse(cases[i]), SP_TAPE_MALFORMED);
    }
}

static void test_tape_depth_and_number_of_values_are_bounded(void **state)
{
    const size_t count = SP_TAPE_NODES_MAX;
    char *line = calloc(1, 2 * count + 64 + SP_LINES_PADDING);
    (void)state;
    assert_non_null(line);
    char *to = line + sprintf(line, "{\"a\":[1");
    for (size_t i = 0; i < count; i++)
        to = strcpy(to, ",1") + 2;
    strcpy(to, "]}\n");
    assert_int_equal(sp_tape_parse(&tape, line, strlen(line) - 1), SP_TAPE_TOO_MUCH);
    free(line);
    char deep[300] = "{\"a\":";
    memset(deep + 5, '[', 100);
    memset(deep + 105, ']', 100);
    strcpy(deep + 205, "}");
    assert_int_equal(parse(deep), SP_TAPE_TOO_MUCH);
}

/* Two parsers that share nothing must agree on what is well-formed. */
static void test_tape_agrees_with_the_grammar_on_mutated_lines(void **state)
{
    static const char *const seeds[] = {
        "{\"a\":[1,-2,3.5e2,true,null,\"x\\u00e9\\udc80\\\"\"],\"b\":{\"c\":"
        "\"\xc3\xa9\",\"d\":{}}}",
        "{}",
        "{\"a\" : [ 1 , { \"b\" : 2 } ] } ",
        "{\"a\":\"\\ud83d\\ude00\"}",
        "{\"a\":1,\"b\":-0}",
    };
    static const char alphabet[] =
        "{}[],:\"\\019-+.eEtruefalsn u\x01\x7f\x80\xc3\xa9\xed\xf4 \t\r";
    (void)state;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        memset(buffer, 0, sizeof buffer);
        strcpy(buffer, seeds[rand() % (int)(sizeof seeds / sizeof *seeds)]);
        size_t size = strlen(buffer);
        for (int changes = rand() % 4; changes > 0; changes--)
            buffer[(size_t)rand() % size] =
                alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        if (buffer[0] != '{')
            continue;
        buffer[size] = '\n';
        size_t bad;
        const bool good = sp_grammar_check(buffer, size, &bad);
        if (good != (sp_tape_parse(&tape, buffer, size) == SP_TAPE_OK))
            fail_msg("they differ on %.*s", (int)size, buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tape_values_have_their_types, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_tape_strings_are_the_bytes_that_were_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tape_malformed_lines_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_tape_depth_and_number_of_values_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_tape_agrees_with_the_grammar_on_mutated_lines, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
