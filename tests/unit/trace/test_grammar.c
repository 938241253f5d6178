#include "requires.h"

#include <stdio.h>
#include <string.h>

#include "trace/grammar.h"

/* A copy with the newline and the padding that the checker wants. */
static const char *padded(const char *line)
{
    static char buffer[1024];
    memset(buffer, 0, sizeof buffer);
    const int n = snprintf(buffer, sizeof buffer - SP_GRAMMAR_PADDING, "%s\n", line);
    assert_true(n > 0);
    return buffer;
}

static void test_grammar_good_lines_are_accepted(void **state)
{
    static const char *const cases[] = {
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":-0}",
        "{\"a\":[0,1,-1,10,-10,1.5,2e3,2E+3,2.5e-3]}",
        "{\"a\":[12,13,\"x\",14,[15,16],{}]}",
        "{\"a\" : [ 1 , 2 ] , \"b\" : { \"c\" : null } }",
        "{\"a\":true,\"b\":false,\"c\":null}",
        "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\udc80\\ud83d\\ude00\"}",
        "{\"\xc3\xa9\":\"\xe2\x82\xac \xf0\x9f\x98\x80 \xef\xbf\xbf\"}",
        "{\"seven77\":\"eight888\",\"sixteen 16 bytes\":\"and some more of it\"}",
        "{\"\":\"\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bad = 0;
        print_message("# %s\n", cases[i]);
        assert_true(sp_grammar_check(padded(cases[i]), strlen(cases[i]), &bad));
    }
}

static void test_grammar_first_bad_byte_is_named(void **state)
{
    static const struct {
        const char *line;
        size_t bad;
    } cases[] = {
        {"", 0},
        {"[]", 0},
        {" {}", 0},
        {"{", 1},
        {"{}}", 2},
        {"{} x", 3},
        {"{\"a\"}", 4},
        {"{\"a\":}", 5},
        {"{\"a\":1,}", 7},
        {"{\"a\":01}", 6},
        {"{\"a\":-}", 6},
        {"{\"a\":1.}", 7},
        {"{\"a\":1e}", 7},
        {"{\"a\":+1}", 5},
        {"{\"a\":tru}", 8},
        {"{\"a\":[1,2,]}", 10},
        {"{\"a\":[1 2]}", 8},
        {"{\"a\":[1}", 7},
        {"{\"a\":{]}", 6},
        {"{\"a\":\"x}", 8},
        {"{\"a\":\"\\x\"}", 6},
        {"{\"a\":\"\\u12g4\"}", 10},
        {"{\"a\":\"tab\there\"}", 9},
        {"{\"a\":\"\xff\"}", 6},
        {"{\"a\":\"\xc0\x80\"}", 6},
        {"{\"a\":\"\xed\xa0\x80\"}", 6},
        {"{\"a\":\"\xf4\x90\x80\x80\"}", 6},
        {"{\"a\":\"\xe2\x82\"}", 6},
        {"{'a':1}", 1},
        {"{\"a\":NaN}", 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bad = 1000;
        print_message("# %s\n", cases[i].line);
        assert_false(
            sp_grammar_check(padded(cases[i].line), strlen(cases[i].line), &bad));
        assert_int_equal(bad, cases[i].bad);
    }
}

static void test_grammar_depth_is_bounded(void **state)
{
    char line[512] = "{\"a\":";
    size_t bad;
    (void)state;
    memset(line + 5, '[', SP_GRAMMAR_DEPTH_MAX - 1);
    memset(line + 4 + SP_GRAMMAR_DEPTH_MAX, ']', SP_GRAMMAR_DEPTH_MAX - 1);
    strcpy(line + 3 + 2 * SP_GRAMMAR_DEPTH_MAX, "}");
    assert_true(sp_grammar_check(padded(line), strlen(line), &bad));
    memmove(line + 6, line + 5, strlen(line + 5) + 1);
    assert_false(sp_grammar_check(padded(line), strlen(line), &bad));
    assert_int_equal(bad, 4 + SP_GRAMMAR_DEPTH_MAX);
}

static void test_grammar_find_gives_outer_members(void **state)
{
    const char *line = padded("{\"a\":{\"b\":1},\"ab\":2,\"b\" : [3, 4] ,\"c\":\"b\"}");
    const char *value;
    size_t size;
    (void)state;
    assert_true(sp_grammar_find(line, strlen(line) - 1, "b", &value, &size));
    assert_int_equal(size, 6);
    assert_memory_equal(value, "[3, 4]", 6);
    assert_true(sp_grammar_find(line, strlen(line) - 1, "a", &value, &size));
    assert_memory_equal(value, "{\"b\":1}", size);
    assert_false(sp_grammar_find(line, strlen(line) - 1, "d", &value, &size));
}

static void test_grammar_uint_bounds(void **state)
{
    uint64_t v = 7;
    (void)state;
    assert_true(sp_grammar_uint("18446744073709551615", 20, &v));
    assert_true(v == UINT64_MAX);
    assert_false(sp_grammar_uint("18446744073709551616", 20, &v));
    assert_false(sp_grammar_uint("", 0, &v));
    assert_false(sp_grammar_uint("01", 2, &v));
    assert_false(sp_grammar_uint("-1", 2, &v));
    assert_true(sp_grammar_uint("0", 1, &v));
    assert_int_equal(v, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar_good_lines_are_accepted),
        cmocka_unit_test(test_grammar_first_bad_byte_is_named),
        cmocka_unit_test(test_grammar_depth_is_bounded),
        cmocka_unit_test(test_grammar_find_gives_outer_members),
        cmocka_unit_test(test_grammar_uint_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
