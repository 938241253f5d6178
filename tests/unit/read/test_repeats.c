#include "requires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/repeats.h"
#include "trace/lines.h"

static struct sp_tape tape;

static enum sp_repeats find(const char *line, uint32_t *ret_node)
{
    const size_t size = strlen(line);
    char *padded = calloc(1, size + SP_LINES_PADDING);
    assert_non_null(padded);
    memcpy(padded, line, size);
    assert_int_equal(sp_tape_parse(&tape, padded, size), SP_TAPE_OK);
    const enum sp_repeats found = sp_repeats_find(&tape, ret_node);
    free(padded);
    return found;
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

static void test_repeats_are_found_wherever_they_stand(void **state)
{
    static const struct {
        const char *line;
        uint32_t node; /* 0: none */
    } cases[] = {
        {"{}", 0},
        {"{\"a\":1}", 0},
        {"{\"a\":1,\"b\":2,\"c\":{\"a\":3,\"b\":4}}", 0},
        {"{\"a\":[{\"x\":1},{\"x\":2}],\"b\":[\"a\",\"a\"]}", 0},
        {"{\"a\":1,\"a\":1}", 3},
        {"{\"\":1,\"\":2}", 3},
        {"{\"a\":1,\"\\u0061\":2}", 3},
        {"{\"a\":{\"x\":1,\"y\":2},\"b\":3,\"a\":4}", 9},
        {"{\"a\":[1,{\"x\":1,\"y\":2,\"x\":3}]}", 9},
        {"{\"ab\":1,\"ba\":2,\"abc\":3,\"cba\":4,\"bca\":5}", 0}, /* that share bits */
        {"{\"path\":1,\"pathx\":2,\"pat\":3,\"path\":4}", 7},
    };
    uint32_t node;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const enum sp_repeats found = find(cases[i].line, &node);
        assert_int_equal(found, cases[i].node ? SP_REPEATS_FOUND : SP_REPEATS_NONE);
        if (cases[i].node)
            assert_int_equal(node, cases[i].node);
    }
}

/* An object of so many members, the last of which is named as that one. */
static enum sp_repeats find_among(unsigned count, unsigned last, uint32_t *ret_node)
{
    char *line = malloc((size_t)count * 24 + 8);
    assert_non_null(line);
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += (size_t)sprintf(line + size, "%s\"member%u\":0", i == 0 ? "{" : ",",
                                i == count - 1 ? last : i);
    sprintf(line + size, "}");
    const enum sp_repeats found = find(line, ret_node);
    free(line);
    return found;
}

static void test_repeats_are_found_among_many(void **state)
{
    uint32_t node;
    (void)state;
    for (unsigned count = 2; count <= SP_MEMBERS_MAX; count += count < 40 ? 1 : 251) {
        assert_int_equal(find_among(count, count, &node), SP_REPEATS_NONE);
        for (unsigned same = 0; same < count - 1; same += 1 + count / 5) {
            assert_int_equal(find_among(count, same, &node), SP_REPEATS_FOUND);
            assert_int_equal(node, 2 * count - 1);
        }
    }
    assert_int_equal(find_among(SP_MEMBERS_MAX, SP_MEMBERS_MAX, &node),
                     SP_REPEATS_NONE);
    assert_int_equal(find_among(SP_MEMBERS_MAX + 1, SP_MEMBERS_MAX + 1, &node),
                     SP_REPEATS_TOO_MUCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_repeats_are_found_wherever_they_stand,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_repeats_are_found_among_many, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
