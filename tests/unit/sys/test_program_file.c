/* What the kernel would run for a file, from its first bytes. */
#include "requires.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/program_file.h"

static struct sp_program_file read_bytes(const void *bytes, size_t size)
{
    char name[] = "/tmp/sandpit-program-XXXXXX";
    struct sp_program_file file;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    sp_program_file_read(fd, &file);
    close(fd);
    return file;
}

static void test_interpreters_are_read_as_the_kernel_reads_them(void **state)
{
    static const struct {
        const char *text;
        const char *by; /* NULL: no script */
        const char *argument;
    } rows[] = {
        {"#!/bin/sh\nrest", "/bin/sh", ""},
        {"#!/bin/sh", "/bin/sh", ""},
        {"#! \t/bin/sh  \nx", "/bin/sh", ""},
        {"#!/usr/bin/env  python3 -I \n", "/usr/bin/env", "python3 -I"},
        {"#!relative arg\n", "relative", "arg"},
        {"#!\n/bin/sh\n", NULL, ""},
        {"#!   \n", NULL, ""},
        {"#!", NULL, ""},
        {"# /bin/sh\n", NULL, ""},
        {"\177ELF", NULL, ""},
        {"", NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sp_program_file file = read_bytes(rows[i].text, strlen(rows[i].text));
        assert_int_equal(file.kind,
                         rows[i].by ? SP_PROGRAM_TEXT : SP_PROGRAM_UNREADABLE);
        assert_string_equal(file.by, rows[i].by ? rows[i].by : "");
        assert_string_equal(file.argument, rows[i].argument);
    }
}

static void test_a_long_line_is_cut_where_the_kernel_cuts_it(void **state)
{
    char text[1000];
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "#!/", 3);
    struct sp_program_file file = read_bytes(text, sizeof text);
    assert_int_equal(file.kind, SP_PROGRAM_TEXT);
    assert_int_equal(strlen(file.by), 254);
}

static void test_a_program_names_its_loader(void **state)
{
    struct sp_program_file file;
    int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    (void)state;
    assert_true(fd >= 0);
    sp_program_file_read(fd, &file);
    close(fd);
    assert_int_equal(file.kind, SP_PROGRAM_ELF);
    if (file.by[0] != '\0')
        assert_int_equal(access(file.by, X_OK), 0);
}

/* Headers that lie: nothing is read beyond them. */
static void test_headers_that_lie_make_no_program(void **state)
{
    unsigned char head[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    (void)state;
    memset(head + 32, 0xff, 8); /* where the program headers are */
    head[54] = 56;              /* their size */
    head[56] = 3;               /* their number */
    assert_int_equal(read_bytes(head, sizeof head).kind, SP_PROGRAM_UNREADABLE);
    head[56] = 0xff;
    head[57] = 0xff;
    assert_int_equal(read_bytes(head, sizeof head).kind, SP_PROGRAM_UNREADABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpreters_are_read_as_the_kernel_reads_them),
        cmocka_unit_test(test_a_long_line_is_cut_where_the_kernel_cuts_it),
        cmocka_unit_test(test_a_program_names_its_loader),
        cmocka_unit_test(test_headers_that_lie_make_no_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
