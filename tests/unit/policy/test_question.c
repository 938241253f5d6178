/* Which rules fit an act, which decides, and why the others lose; and what holds for a folder and
 * all that may come to be in it.
 */
#include "make.h"

#include "policy/question.h"

static const struct {
    const char *policy;
    enum sp_question_kind kind;
    const char *target;
    enum sp_action action;
    const char *standings; /* of the rules that fit: the pattern and how it fares */
} cases[] = {
    {"[fs]\ndeny_read = ['/a/b']\nallow_read = ['/a', '/']\n", SP_ASK_READ, "/a/b/c",
     SP_DENY, "/a/b decides, /a fit, / fit"},
    {"[fs]\ndeny_read = ['/a']\nallow_read = ['/a']\n", SP_ASK_READ, "/a/b", SP_DENY,
     "/a decides, /a action"},
    {"[fs]\ndeny_read = ['/a', '**/x']\n", SP_ASK_READ, "/a/x", SP_DENY,
     "**/x decides, /a fit"},
    {"[fs]\ndeny_read = ['/a/*', '/*/b']\n", SP_ASK_READ, "/a/b", SP_DENY,
     "/a/* decides, /*/b same"},
    {"[fs]\nallow_read = ['/z']\n", SP_ASK_READ, "/a", SP_DENY, ""},
    {"[fs]\nallow_write = ['/a']\ndeny_read = ['/']\n", SP_ASK_READ, "/a/b", SP_ALLOW,
     "/a decides, / fit"},
    {"[fs]\nallow_read = ['{python}']\n", SP_ASK_READ, "/usr/lib/x", SP_ALLOW,
     "{python} decides"},
    {"[imports]\ndeny = ['xml']\nallow = ['xml.dom']\n", SP_ASK_IMPORT, "xml", SP_ALLOW,
     "xml.dom decides, xml fit"},
    {"[network]\ndeny = ['*']\nclients = ['requests']\n", SP_ASK_IMPORT, "requests",
     SP_DENY, "requests decides"},
    {"[network]\ndeny = ['*']\nclients = ['requests']\n[imports]\nallow_add = "
     "['requests']\n",
     SP_ASK_IMPORT, "requests", SP_ALLOW, "requests decides, requests imports"},
    {"[network]\nclients = ['requests']\n", SP_ASK_IMPORT, "requests", SP_ALLOW,
     "requests network"},
    {"[env]\nallow = ['LC_*', '*']\n", SP_ASK_ENV, "LC_ALL", SP_ALLOW,
     "LC_* decides, * fit"},
    {"[process]\ndeny = ['git']\n", SP_ASK_RUN, "/usr/bin/git", SP_DENY, "git decides"},
    {"[process]\nfork = false\n", SP_ASK_FORK, "", SP_DENY, ""},
    {"[network]\nallow = ['*.x.com', 'a.x.com:1']\n", SP_ASK_RESOLVE, "a.x.com",
     SP_ALLOW, "a.x.com:1 decides, *.x.com fit"},
};

static void describe(const struct sp_policy *p, const struct sp_rival *rivals,
                     size_t count, char *to, size_t size)
{
    static const char *const words[] = {"decides", "grant",   "action", "fit",
                                        "same",    "imports", "network"};
    to[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(to);
        snprintf(to + n, size - n, "%s%s %s", i > 0 ? ", " : "",
                 sp_policy_text(p, rivals[i].rule->written), words[rivals[i].standing]);
        assert_true(rivals[i].fit[0] != '\0');
    }
}

static void test_rivals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct sp_rival rivals[SP_RIVALS_MAX];
        char told[400];
        struct sp_policy *p = make_bound(cases[i].policy);
        const struct sp_question question = {.kind = cases[i].kind,
                                             .target = cases[i].target};
        size_t count = sp_question_rivals(p, &question, rivals);
        describe(p, rivals, count, told, sizeof told);
        if (sp_question_judge(p, &question).action != cases[i].action ||
            strcmp(told, cases[i].standings) != 0)
            fail_msg("%s%s: %s", cases[i].policy, cases[i].target, told);
        free(p);
    }
}

static const struct {
    const char *policy;
    const char *folder;
    enum sp_cover cover;
    const char *about;
} covers[] = {
    {"", "/a", SP_COVER_ALLOWED, "nothing is said"},
    {"[fs]\ndeny_read = ['/a']\n", "/a", SP_COVER_DENIED, "the folder itself"},
    {"[fs]\ndeny_read = ['/a']\n", "/a/b", SP_COVER_DENIED, "one below it"},
    {"[fs]\ndeny_read = ['/a/b']\n", "/a", SP_COVER_MIXED, "one above it"},
    {"[fs]\ndeny_read = ['/a/b']\n", "/c", SP_COVER_ALLOWED, "another one"},
    {"[fs]\ndeny_read = ['/a/b']\n", "/a/bc", SP_COVER_ALLOWED, "by whole names"},
    {"[fs]\ndeny_read = ['**/.env']\n", "/a", SP_COVER_MIXED, "a glob of anywhere"},
    {"[fs]\ndeny_read = ['/x/*.key']\n", "/a", SP_COVER_ALLOWED, "a glob of elsewhere"},
    {"[fs]\ndeny_read = ['/a/*.key']\n", "/a", SP_COVER_MIXED, "a glob of it"},
    {"[fs]\nallow_read = ['/a']\n", "/a", SP_COVER_ALLOWED, "allowed as a whole"},
    {"[fs]\nallow_read = ['/a']\n", "/", SP_COVER_MIXED, "part of it allowed"},
    {"[fs]\nallow_read = ['/a']\n", "/b", SP_COVER_DENIED, "named by nothing"},
    {"[fs]\nallow_read = ['/a', '/b/*']\n", "/b", SP_COVER_MIXED,
     "denied, but what is in it not"},
    {"[fs]\nallow_write = ['/a']\nallow_read = []\n", "/a", SP_COVER_ALLOWED,
     "to write is to read"},
    {"[fs]\nallow_read = ['/a']\ndeny_read = ['*']\n", "/a", SP_COVER_ALLOWED,
     "over anything"},
    {"[fs]\nallow_read = ['/a']\ndeny_read = ['/*']\n", "/a", SP_COVER_MIXED,
     "the object exactly, but in it as specific"},
};

static void test_covers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof covers / sizeof *covers; i++) {
        struct sp_policy *p = make_bound(covers[i].policy);
        enum sp_cover cover = sp_policy_cover(p, SP_LIST_READ, covers[i].folder);
        if (cover != covers[i].cover)
            fail_msg("%s%s: %d (%s)", covers[i].policy, covers[i].folder, cover,
                     covers[i].about);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rivals),
        cmocka_unit_test(test_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
