/* Addresses as guests hand them over, and names as they are looked up. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervise/address.h"
#include "supervise/hosts.h"

static void take(struct sp_address *a, const void *raw, int size)
{
    memset(a, 0xaa, sizeof *a);
    memcpy(&a->raw, raw, (size_t)size);
    assert_true(sp_address_take(a, size));
}

static void inet(struct sp_address *a, const char *host, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
        take(a, &in, sizeof in);
        return;
    }
    assert_int_equal(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
    take(a, &in6, sizeof in6);
}

static void test_text_and_bytes(void **state)
{
    static const struct {
        const char *host;
        const char *text;
        unsigned char bytes[16];
    } cases[] = {
        {"10.1.2.3", "10.1.2.3:80", {[10] = 0xff, 0xff, 10, 1, 2, 3}},
        {"::ffff:10.1.2.3", "[::ffff:10.1.2.3]:80", {[10] = 0xff, 0xff, 10, 1, 2, 3}},
        {"2001:db8::1", "[2001:db8::1]:80", {0x20, 1, 0xd, 0xb8, [15] = 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sp_address a;
        uint8_t bytes[16];
        inet(&a, cases[i].host, 80);
        assert_true(sp_address_is_inet(&a));
        assert_int_equal(a.port, 80);
        assert_string_equal(a.text, cases[i].text);
        sp_address_bytes(&a, bytes);
        assert_memory_equal(bytes, cases[i].bytes, 16);
    }
}

/* Where the kernel makes a connection to no address in particular. */
static void test_any_is_settled_as_loopback(void **state)
{
    static const char *const cases[][2] = {{"0.0.0.0", "127.0.0.1"},
                                           {"::", "::1"},
                                           {"::ffff:0.0.0.0", "127.0.0.1"},
                                           {"10.0.0.0", "10.0.0.0"},
                                           {"::2", "::2"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sp_address a;
        struct sp_address b;
        uint8_t is[16];
        uint8_t meant[16];
        inet(&a, cases[i][0], 1);
        inet(&b, cases[i][1], 1);
        sp_address_settle(&a);
        sp_address_bytes(&a, is);
        sp_address_bytes(&b, meant);
        assert_memory_equal(is, meant, 16);
    }
}

static void test_sizes(void **state)
{
    struct sp_address a;
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)state;
    assert_false(sp_address_take(&a, 1));
    assert_false(sp_address_take(&a, 129));
    assert_false(sp_address_take(&a, -1));
    take(&a, &in6, 24); /* without a scope, as the kernel takes it */
    assert_true(sp_address_is_inet(&a));
    take(&a, &in6, 23);
    assert_false(sp_address_is_inet(&a));
    memset(un.sun_path, 'x', sizeof un.sun_path); /* no NUL at its end */
    take(&a, &un, sizeof un);
    assert_int_equal(strlen(a.text), sizeof un.sun_path);
    un.sun_path[0] = '\0';
    take(&a, &un, (int)offsetof(struct sockaddr_un, sun_path) + 4);
    assert_string_equal(a.text, "@xxx");
    take(&a, &un, (int)offsetof(struct sockaddr_un, sun_path) + 1);
    assert_string_equal(a.text, "@");
    take(&a, &un, 2);
    assert_string_equal(a.text, "a unix address");
}

static void test_names_have_one_form(void **state)
{
    static const struct {
        const char *name;
        const char *normal; /* NULL: none */
    } cases[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.com.", "example.com"},
        {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        {"", NULL},
        {".", NULL},
        {"a b", NULL},
        {"b\xc3\xbc.example", NULL},
    };
    char normal[SP_HOST_BYTES];
    char longest[300];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool some = sp_host_normal(cases[i].name, normal);
        assert_int_equal(some, cases[i].normal != NULL);
        if (some)
            assert_string_equal(normal, cases[i].normal);
    }
    memset(longest, 'a', sizeof longest);
    longest[255] = '\0';
    assert_true(sp_host_normal(longest, normal));
    longest[255] = 'a';
    longest[256] = '\0';
    assert_false(sp_host_normal(longest, normal));
}

static void test_names_are_remembered_up_to_a_bound(void **state)
{
    struct sp_hosts hosts = {0};
    uint8_t address[16] = {0};
    char name[32];
    (void)state;
    assert_null(sp_hosts_of(&hosts, address)[0]);
    sp_hosts_add(&hosts, "a.test", address);
    sp_hosts_add(&hosts, "b.test", address);
    sp_hosts_add(&hosts, "a.test", address);
    const char *const *found = sp_hosts_of(&hosts, address);
    assert_string_equal(found[0], "a.test");
    assert_string_equal(found[1], "b.test");
    assert_null(found[2]);
    for (unsigned i = 0; i < SP_HOSTS_MAX; i++) {
        address[0] = (uint8_t)(1 + i / 200);
        address[1] = (uint8_t)(i % 200);
        snprintf(name, sizeof name, "n%u.test", i);
        sp_hosts_add(&hosts, name, address);
    }
    assert_int_equal(hosts.count, SP_HOSTS_MAX);
    memset(address, 0, sizeof address); /* the oldest went */
    assert_null(sp_hosts_of(&hosts, address)[0]);
    sp_hosts_release(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_and_bytes),
        cmocka_unit_test(test_any_is_settled_as_loopback),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_names_have_one_form),
        cmocka_unit_test(test_names_are_remembered_up_to_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
