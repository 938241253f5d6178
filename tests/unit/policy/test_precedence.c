/* Which of several rules that fit holds: the same order in every section. */
#include "make.h"

#include <arpa/inet.h>

#define READ    "[fs]\n"
#define IMPORTS "[imports]\n"
#define NET     "[network]\n"
#define RUN     "[process]\n"
#define ENV     "[env]\n"

static const struct {
    char kind; /* r w i n h p e */
    const char *policy;
    const char *target;
    bool denied;
    const char *about;
} cases[] = {
    {'r', READ "deny_read = ['/a']", "/a", true, "the object itself"},
    {'r', READ "deny_read = ['/a']", "/a/b/c", true, "and what is below it"},
    {'r', READ "deny_read = ['/a']", "/ab", false, "by whole components"},
    {'r', READ "deny_read = ['/a/']", "/a", true, "a slash at the end says no more"},
    {'r', READ "deny_read = ['/a/**']", "/a", true, "nor do two stars"},
    {'r', READ "allow_read = ['/a']", "/b", true, "an allow list denies the rest"},
    {'r', READ "allow_read = []", "/b", true, "an empty one everything"},
    {'r', READ "deny_read = ['/b']", "/c", false, "a deny list allows the rest"},
    {'r', READ "deny_read = ['/a']\nallow_read = ['/a/b']", "/a/b/c", false,
     "longer folder"},
    {'r', READ "allow_read = ['/a']\ndeny_read = ['/a/b']", "/a/b/c", true,
     "either way"},
    {'r', READ "allow_read = ['/a']\ndeny_read = ['/a']", "/a/b", true,
     "equal: deny wins"},
    {'r', READ "allow_read = ['*']\ndeny_read = ['/a']", "/a/b", true,
     "a folder before any"},
    {'r', READ "deny_read = ['*']\nallow_read = ['/a']", "/a/b", false, "either way"},
    {'r', READ "allow_read = ['/']\ndeny_read = ['*']", "/a", false,
     "the root is a folder"},
    {'r', READ "allow_read = ['/a/b']\ndeny_read = ['**/b']", "/a/b", false,
     "the exact object before a glob"},
    {'r', READ "deny_read = ['/a/b']\nallow_read = ['**/b']", "/a/b", true,
     "either way"},
    {'r', READ "allow_read = ['/a/b']\ndeny_read = ['**/c']", "/a/b/c", true,
     "a glob of the object before a folder"},
    {'r', READ "deny_read = ['/a/b']\nallow_read = ['**/*.py']", "/a/b/c.py", false,
     "either way"},
    {'r', READ "allow_read = ['/a/b/c']\ndeny_read = ['/a/*']", "/a/b/c/d", false,
     "of folders the longer, globs too"},
    {'r', READ "allow_read = ['/a']\ndeny_read = ['/a/*']", "/a/b/c", true,
     "either way"},
    {'r', READ "allow_read = ['/a/**/*']\ndeny_read = ['/a/b']", "/a/b/c", true,
     "all below a folder is no object of its own"},
    {'r', READ "allow_read = ['/a']\ndeny_read = ['/a/**/.env']", "/a/.env", true,
     "secrets"},
    {'r', READ "allow_read = ['/a']\ndeny_read = ['**/.env']", "/a/b/.env/x", true,
     "and what is below them"},
    {'r', READ "allow_read = ['/py/x']\nallow_write = ['/a']", "/a/b", false,
     "who may write may read"},
    {'r', READ "allow_write = ['/a']\ndeny_read = ['/a/b']", "/a/b", true,
     "unless a rule on reading says no"},
    {'w', READ "allow_read = ['/a']\nallow_write = []", "/a/b", true,
     "but not the reverse"},
    {'w', READ "allow_write = ['{work}']\ndeny_write = ['{work}/.git']",
     "/w/.git/hooks/x", true, "a folder in the working one"},
    {'w', READ "allow_write = ['{work}/out', '{tmp}']", "/w/in", true, "placeholders"},
    {'w', READ "allow_write = ['{work}/out', '{tmp}']", "/t/x", false, "each its own"},
    {'w', READ "deny_write = ['{python}']", "/py/lib/site.py", true,
     "the interpreter's"},
    {'w', READ "deny_write = ['{python}']", "/usr/lib/x", false,
     "only its own for writing"},
    {'r', READ "allow_read = ['{python}']", "/usr/lib/x", false,
     "for reading also libraries"},
    {'r', READ "deny_read = ['~/.ssh']", "/h/.ssh/id", true, "the home"},
    {'r', READ "deny_read = ['/link/x']", "/target/x", true, "where a link leads"},
    {'r', READ "deny_read = ['/link']", "/link", true, "and the link itself"},
    {'r', READ "deny_read = ['/link']", "/target/y", true, "both"},
    {'r', READ "deny_read = ['/link/*']", "/target/y", true, "before a wildcard too"},
    {'r', READ "allow_read = ['/a[*]b']", "/a*b", false,
     "a wildcard in brackets is none"},
    {'r', READ "allow_read = ['/a[*]b']", "/acb", true, "so it matches nothing else"},

    {'i', IMPORTS "deny = ['xml']", "xml.dom", true, "a module covers its submodules"},
    {'i', IMPORTS "deny = ['xml']", "xmlrpc", false, "by whole names"},
    {'i', IMPORTS "deny = ['xml']\nallow = ['xml.dom']", "xml.dom.minidom", false,
     "the longer name"},
    {'i', IMPORTS "deny = ['xml']\nallow = ['xml.dom']", "xml", false,
     "and what must be imported for it"},
    {'i', IMPORTS "deny = ['xml']\nallow = ['xml.dom']", "xml.sax", true,
     "but no more"},
    {'i', IMPORTS "deny = ['xml*']", "xmlrpc.client", true, "a glob"},
    {'i', IMPORTS "deny = ['*']\nallow = ['xml']", "xml.dom", false,
     "a name before any"},
    {'i', IMPORTS "allow = ['json']", "os", true, "an allow list denies the rest"},
    {'i', NET "deny = ['*']\nclients = ['requests']", "requests.api", true,
     "a client where the network is closed"},
    {'i', NET "deny = ['*']\nallow = ['x:1']\nclients = ['requests']", "requests",
     false, "any grant of the network lifts that"},
    {'i', "extends = 'no-network'\n" IMPORTS "allow_add = ['requests']", "requests",
     false, "and so does naming it"},

    {'n', NET "allow = ['10.0.0.0/8']", "10.1.2.3:80", false, "a range"},
    {'n', NET "allow = ['10.0.0.0/8']", "11.0.0.0:80", true, "and its end"},
    {'n', NET "allow = ['10.0.0.0/8:80']", "10.1.2.3:81", true, "with a port"},
    {'n', NET "allow = ['10.0.0.0/8']\ndeny = ['10.1.0.0/16']", "10.1.2.3:80", true,
     "the longer range"},
    {'n', NET "deny = ['10.0.0.0/8']\nallow = ['10.1.2.3']", "10.1.2.3:80", false,
     "the address before a range"},
    {'n', NET "deny = ['10.1.2.3']\nallow = ['10.1.2.3:80']", "10.1.2.3:80", false,
     "with its port before without"},
    {'n', NET "allow = ['10.1.2.3']\ndeny = ['10.1.2.3']", "10.1.2.3:80", true,
     "equal"},
    {'n', NET "allow = ['loopback']", "127.0.0.9:1", false, "loopback"},
    {'n', NET "allow = ['localhost:8080']", "127.0.0.1:8080", false,
     "by its usual name"},
    {'n', NET "allow = ['localhost:8080']", "::1:8080", false, "in IPv6 too"},
    {'n', NET "allow = ['loopback']\ndeny = ['127.0.0.0/8']", "127.0.0.1:1", true,
     "a range before loopback"},
    {'n', NET "deny = ['*']\nallow = ['loopback']", "127.0.0.1:1", false, "before any"},
    {'n', NET "deny = ['*:25']", "10.0.0.1:25", true, "a port of anything"},
    {'n', NET "deny = ['*:25']", "10.0.0.1:26", false, "and no other"},
    {'n', NET "allow = ['::1']", "::1:5", false, "IPv6"},
    {'n', NET "allow = ['2001:db8::/32']", "2001:db8::7:5", false, "a range of it"},
    {'n', NET "allow = ['::/0']", "2001:db8::7:5", false, "all of IPv6"},
    {'n', NET "allow = ['::/0']", "10.1.2.3:5", true, "is not IPv4"},
    {'n', NET "allow = ['0.0.0.0/0']", "10.1.2.3:5", false, "all of IPv4"},
    {'n', NET "allow = ['0.0.0.0/0']", "::1:5", true, "is not IPv6"},
    {'n', NET "deny = ['::/0', '0.0.0.0/0']\nallow = ['loopback']", "::1:5", true,
     "the widest range before loopback"},
    {'n', NET "allow = ['::ffff:0:0/96']", "10.1.2.3:5", false,
     "IPv4 as IPv6 writes it"},
    {'n', NET "allow = ['*:443']\ndeny = ['10.0.0.0/8']", "10.1.2.3:443", true,
     "a range before a port of anything"},
    {'n', NET "allow = ['10.0.0.0/8']\ndeny = ['10.0.0.0/8:25']", "10.1.2.3:25", true,
     "a range with its port before without"},
    {'n', NET "allow = ['[2001:db8::/32]:443']", "2001:db8::7:5", true, "with a port"},
    {'h', NET "allow = ['api.example.com:443']", "api.example.com", false, "a name"},
    {'h', NET "allow = ['API.Example.com']", "api.example.com", false, "in any case"},
    {'h', NET "allow = ['api.example.com:443']", "example.com", true, "not another"},
    {'h', NET "allow = ['*.example.com']", "a.b.example.com", false,
     "a glob takes points"},
    {'h', NET "allow = ['*.example.com']\ndeny = ['b.example.com']", "b.example.com",
     true, "the name before a glob"},

    {'u', NET "allow = ['unix:/run/app.sock']", "/run/app.sock", false, "a path"},
    {'u', NET "allow = ['unix:/run/app.sock']", "/run/app.sock2", true, "no other"},
    {'u', NET "allow = ['unix:/run/app']", "/run/app/a.sock", false,
     "a folder of them"},
    {'u', NET "allow = ['unix:/run/*.sock']", "/run/b.sock", false, "a glob"},
    {'u', NET "allow = ['unix:/run/*.sock']\ndeny = ['unix:/run/b.sock']",
     "/run/b.sock", true, "the path before a glob"},
    {'u', NET "allow = ['unix:@app']", "@app", false, "an abstract name"},
    {'u', NET "allow = ['unix:@app']", "@app2", true, "and no other"},
    {'u', NET "allow = ['unix:@app']", "/app", true, "nor a path"},
    {'u', NET "allow = ['10.0.0.0/8', 'loopback', 'x.test']", "/run/b.sock", true,
     "addresses say nothing about them"},
    {'u', NET "allow = ['*']", "/run/b.sock", false, "anything does"},
    {'u', NET "allow = ['*:80']", "/run/b.sock", true, "they have no port"},
    {'u', NET "deny = ['unix:/run/b.sock']", "/run/c.sock", false, "denied alone"},

    {'p', RUN "allow = ['git']", "/usr/bin/git", false, "a name, as found on PATH"},
    {'p', RUN "allow = ['git']", "/tmp/git", true, "not one of that name elsewhere"},
    {'p', RUN "deny = ['git']", "/tmp/git", true, "denied wherever it lies"},
    {'p', RUN "deny = ['curl']", "/opt/curl", true, "also when it is not on PATH"},
    {'p', RUN "allow = ['{python}']", "/py/bin/python3", false, "the interpreter"},
    {'p', RUN "allow = ['/opt/x']", "/opt/x/bin/y", false, "a folder of programs"},
    {'p', RUN "deny = ['*']\nallow = ['git*']", "/usr/bin/git-lfs", false,
     "a glob of names"},

    {'e', ENV "allow = ['LC_*']", "LC_ALL", false, "a glob"},
    {'e', ENV "allow = ['LC_*']", "LANG", true, "the rest is denied"},
    {'e', ENV "allow = ['*']\ndeny = ['*_TOKEN']", "MY_TOKEN", true,
     "a glob before any"},
    {'e', ENV "allow = ['AWS_REGION']\ndeny = ['AWS_*']", "AWS_REGION", false,
     "the name before a glob"},
    {'e', ENV "deny = ['A']", "A.B", false, "names of variables have no parts"},
};

static struct sp_verdict judge_endpoint(const struct sp_policy *p, const char *target)
{
    struct sp_endpoint e = {0};
    char address[64];
    const char *colon = strrchr(target, ':');
    snprintf(address, sizeof address, "%.*s", (int)(colon - target), target);
    e.port = (uint16_t)atoi(colon + 1);
    if (inet_pton(AF_INET6, address, e.address) != 1) {
        memset(e.address + 10, 0xff, 2);
        assert_int_equal(inet_pton(AF_INET, address, e.address + 12), 1);
    }
    return sp_policy_endpoint(p, &e);
}

static struct sp_verdict judge(const struct sp_policy *p, char kind, const char *target)
{
    switch (kind) {
    case 'r':
        return sp_policy_path(p, SP_LIST_READ, target);
    case 'w':
        return sp_policy_path(p, SP_LIST_WRITE, target);
    case 'i':
        return sp_policy_import(p, target, true);
    case 'n':
        return judge_endpoint(p, target);
    case 'u':
        return sp_policy_endpoint(p, &(struct sp_endpoint){.unix_name = target});
    case 'h':
        return sp_policy_host(p, target);
    case 'p':
        return sp_policy_program(p, target);
    default:
        return sp_policy_variable(p, target);
    }
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sp_policy *p = make_bound(cases[i].policy);
        struct sp_verdict v = judge(p, cases[i].kind, cases[i].target);
        if ((v.action == SP_DENY) != cases[i].denied)
            fail_msg("%s\n%c %s: by %s (%s)", cases[i].policy, cases[i].kind,
                     cases[i].target, v.rule, cases[i].about);
        free(p);
    }
}

static void test_verdict_names_rule_and_place(void **state)
{
    (void)state;
    struct sp_policy *p =
        make_bound("[fs]\nallow_read = ['/a']\n\ndeny_read = [\n  '/a/b',\n]\n");
    struct sp_verdict v = sp_policy_path(p, SP_LIST_READ, "/a/b/c");
    assert_string_equal(v.rule, "fs.deny_read \"/a/b\"");
    assert_string_equal(v.source, "test.toml");
    assert_int_equal(v.line, 5);
    assert_true(v.by_rule);
    v = sp_policy_path(p, SP_LIST_READ, "/c");
    assert_string_equal(v.rule, "fs.allow_read");
    assert_int_equal(v.line, 2);
    free(p);
}

static void test_libraries_may_import_what_the_program_may_not(void **state)
{
    (void)state;
    struct sp_policy *p = make_bound("[imports]\ndeny = ['xml']\n");
    assert_int_equal(sp_policy_import(p, "xml", true).action, SP_DENY);
    assert_int_equal(sp_policy_import(p, "xml", false).action, SP_ALLOW);
    free(p);
    p = make_bound("[imports]\ndeny = ['xml']\nscope = 'all'\n");
    assert_int_equal(sp_policy_import(p, "xml", false).action, SP_DENY);
    free(p);
}

/* A folder of the run whose own name has wildcards in it. */
static void test_names_of_places_are_no_globs(void **state)
{
    (void)state;
    struct sp_policy *p =
        make_bound_to("[fs]\nallow_read = ['{work}/*.txt', '{work}/x']\n", "/[ab]*");
    assert_non_null(p);
    assert_int_equal(sp_policy_path(p, SP_LIST_READ, "/[ab]*/y.txt").action, SP_ALLOW);
    assert_int_equal(sp_policy_path(p, SP_LIST_READ, "/[ab]*/x").action, SP_ALLOW);
    assert_int_equal(sp_policy_path(p, SP_LIST_READ, "/a/y.txt").action, SP_DENY);
    assert_int_equal(sp_policy_path(p, SP_LIST_READ, "/abc/y.txt").action, SP_DENY);
    free(p);
}

/* A rule to deny that no longer fits would deny nothing. */
static void test_pattern_too_long_where_it_is_bound_refuses_the_policy(void **state)
{
    char text[4200];
    char work[200];
    (void)state;
    memset(work, 'w', sizeof work);
    work[0] = '/';
    work[sizeof work - 1] = '\0';
    snprintf(text, sizeof text, "[fs]\ndeny_read = ['{work}/%s']\n", "");
    size_t at = strlen(text) - 3;
    memset(text + at, 'x', 4000);
    memcpy(text + at + 4000, "']\n", 4);
    assert_null(make_bound_to(text, work));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_verdict_names_rule_and_place),
        cmocka_unit_test(test_libraries_may_import_what_the_program_may_not),
        cmocka_unit_test(test_names_of_places_are_no_globs),
        cmocka_unit_test(test_pattern_too_long_where_it_is_bound_refuses_the_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
