/* Globs: what each wildcard takes, and that the matcher agrees with one that simply tries all. */
#include "requires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/glob.h"

static const struct {
    const char *pattern;
    const char *text;
    bool whole;
    size_t folder;
    const char *about;
} paths[] = {
    {"/a/*", "/a/b", true, 0, "a star takes a component"},
    {"/a/*", "/a/b/c", false, 4, "but no slash: the folder matches"},
    {"/a/*", "/a/", true, 0, "it may take nothing"},
    {"/a/*", "/a", false, 0, "the folder itself is not in it"},
    {"/a/?", "/a/b", true, 0, "one character"},
    {"/a/?", "/a/bc", false, 0, "not two"},
    {"/a?b", "/a/b", false, 0, "nor a slash"},
    {"/a/?", "/a/\xc3\xa9", true, 0, "a character outside ASCII is one"},
    {"/a/?", "/a/\xf0\x9f\x90\x8d", true, 0, "so is one of four bytes"},
    {"/a/?", "/a/\xc3", true, 0, "a byte that is no UTF-8 is one too"},
    {"/a/??", "/a/\xc3(", true, 0, "and what follows it another"},
    {"/a/[abc]", "/a/b", true, 0, "a set"},
    {"/a/[abc]", "/a/d", false, 0, "and what is not in it"},
    {"/a/[a-c]x", "/a/bx", true, 0, "a range"},
    {"/a/[!a-c]x", "/a/dx", true, 0, "none of a range"},
    {"/a/[^a-c]x", "/a/bx", false, 0, "the same, as regular expressions write it"},
    {"/a[!b]c", "/a/c", false, 0, "a negated set takes no slash"},
    {"/a/[]x]", "/a/]", true, 0, "a bracket that stands first is one of the set"},
    {"/a/[a-]", "/a/-", true, 0, "a dash at the end is itself"},
    {"/a/[\xc3\xa0-\xc3\xbc]", "/a/\xc3\xa9", true, 0, "a range outside ASCII"},
    {"/a/[\xc3\xa0-\xc3\xbc]", "/a/\xc3\xbf", false, 0, "and its end"},
    {"/a/[*]", "/a/*", true, 0, "a wildcard in brackets is itself"},
    {"/a/[*]", "/a/b", false, 0, "and nothing else"},
    {"/a/[b", "/a/[b", true, 0, "a bracket without end is itself"},
    {"**/.env", "/.env", true, 0, "any folder, the root too"},
    {"**/.env", "/a/b/.env", true, 0, "a deep one"},
    {"**/.env", "/a/b/.env/c", false, 9, "what is below it"},
    {"**/.env", "/a/.env/b/.env/c", false, 14, "the longest folder counts"},
    {"**/.env", "/a/x.env", false, 0, "whole components only"},
    {"**/.env", "/a/.envx", false, 0, "to their end"},
    {"/a/**/b", "/a/b", true, 0, "two stars may take nothing"},
    {"/a/**/b", "/a/x/y/b", true, 0, "or several folders"},
    {"/a/**/b", "/a/xb", false, 0, "but no part of one"},
    {"/a/**/b", "/a/b/b/b", true, 6, "and the last b is the object"},
    {"/a/**b", "/a/x/yb", true, 0, "without a slash they take any characters"},
    {"/a/**/*.py", "/a/x/y.py", true, 0, "both kinds"},
    {"/a/**/*.py", "/a/y.py", true, 0, "in the folder itself"},
    {"/a/*/c/**/d*", "/a/b/c/x/d1/z", false, 11, "all of it"},
    {"/*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaa", false, 0, "no blow-up"},
    {"/x/**/a/**/b", "/x/a/a/b/q", false, 8, "two of them"},
};

static void test_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct sp_glob_match m = sp_glob_match(paths[i].pattern, paths[i].text,
                                               strlen(paths[i].text), '/', '/');
        if (m.whole != paths[i].whole || m.folder != paths[i].folder)
            fail_msg("%s against %s: %d, %zu (%s)", paths[i].pattern, paths[i].text,
                     m.whole, m.folder, paths[i].about);
    }
}

static void test_names(void **state)
{
    (void)state;
    struct sp_glob_match m = sp_glob_match("x*", "xml.dom", 7, '\0', '.');
    assert_true(m.whole); /* a star takes points */
    m = sp_glob_match("x?l", "xml.dom", 7, '\0', '.');
    assert_false(m.whole);
    assert_int_equal(m.folder, 3);
    assert_true(
        sp_glob_match("*.example.com", "a.b.example.com", 15, '\0', '\0').whole);
    assert_false(sp_glob_match("*.example.com", "example.com", 11, '\0', '\0').whole);
}

static void test_brackets_have_an_end(void **state)
{
    (void)state;
    assert_true(sp_glob_closed("/a/[b]c[]]"));
    assert_true(sp_glob_closed("/a"));
    assert_false(sp_glob_closed("/a/[b"));
    assert_false(sp_glob_closed("/a/[]"));
    assert_false(sp_glob_closed("/a/[!]"));
}

/* The same by trying everything; ASCII only. */
static bool tries(const char *pattern, const char *text, const char *end)
{
    if (*pattern == '\0')
        return text == end;
    if (strncmp(pattern, "**/", 3) == 0) {
        if (tries(pattern + 3, text, end))
            return true;
        const char *slash = memchr(text, '/', (size_t)(end - text));
        return slash != NULL && tries(pattern, slash + 1, end);
    }
    if (strncmp(pattern, "**", 2) == 0)
        return tries(pattern + 2, text, end) ||
               (text < end && tries(pattern, text + 1, end));
    if (*pattern == '*')
        return tries(pattern + 1, text, end) ||
               (text < end && *text != '/' && tries(pattern, text + 1, end));
    if (text == end)
        return false;
    if (*pattern == '?')
        return *text != '/' && tries(pattern + 1, text + 1, end);
    if (strncmp(pattern, "[a]", 3) == 0)
        return *text == 'a' && tries(pattern + 3, text + 1, end);
    if (strncmp(pattern, "[!a]", 4) == 0)
        return *text != 'a' && *text != '/' && tries(pattern + 4, text + 1, end);
    return *pattern == *text && tries(pattern + 1, text + 1, end);
}

static void random_pattern(char *to)
{
    static const char *const pieces[] = {"a",   "b",   "/",    "*", "?",
                                         "**/", "[a]", "[!a]", "**"};
    to[0] = '\0';
    for (int i = rand() % 7; i >= 0; i--)
        strcat(to, pieces[rand() % 9]);
}

static void test_agrees_with_trying_everything(void **state)
{
    (void)state;
    srand(20);
    unsigned matched = 0;
    for (int round = 0; round < 300000; round++) {
        char pattern[64];
        char text[16];
        size_t size = (size_t)rand() % 12;
        for (size_t i = 0; i < size; i++)
            text[i] = "aabb//"[rand() % 6];
        text[size] = '\0';
        do
            random_pattern(pattern);
        while (strstr(pattern, "***") != NULL);
        struct sp_glob_match m = sp_glob_match(pattern, text, size, '/', '/');
        size_t folder = 0;
        for (size_t i = 1; i < size; i++)
            if (text[i] == '/' && tries(pattern, text, text + i))
                folder = i;
        if (m.whole != tries(pattern, text, text + size) || m.folder != folder)
            fail_msg("%s against %s: %d, %zu", pattern, text, m.whole, m.folder);
        matched += m.whole;
    }
    assert_true(matched > 10000);
}

/* What a guest could name to keep the supervisor busy. The pattern's author chose the pattern. */
static void test_deep_path_is_read_once(void **state)
{
    char text[4095];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 == 0 ? '/' : 'a';
    for (int i = 0; i < 1000; i++) {
        assert_false(sp_glob_match("**/x", text, sizeof text, '/', '/').whole);
        assert_false(sp_glob_match("/**a**/x*", text, sizeof text, '/', '/').whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_brackets_have_an_end),
        cmocka_unit_test(test_agrees_with_trying_everything),
        cmocka_unit_test(test_deep_path_is_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
