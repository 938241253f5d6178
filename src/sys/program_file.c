#include "sys/program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

#define LINE_BYTES  256u /* as the kernel: BINPRM_BUF_SIZE */
#define HEADERS_MAX 64u

/* The `#!` line as the kernel takes it apart: interpreter, blanks, the rest as one argument. */
static bool read_line(const char *text, size_t size, struct sp_program_file *file)
{
    char line[LINE_BYTES + 1];
    memcpy(line, text + 2, size - 2);
    line[size - 2] = '\0';
    line[strcspn(line, "\n")] = '\0';
    size_t end = strlen(line);
    while (end > 0 && (line[end - 1] == ' ' || line[end - 1] == '\t'))
        line[--end] = '\0';
    const char *at = line + strspn(line, " \t");
    size_t name = strcspn(at, " \t");
    if (name == 0)
        return false;
    snprintf(file->by, sizeof file->by, "%.*s", (int)name, at);
    at += name;
    snprintf(file->argument, sizeof file->argument, "%s", at + strspn(at, " \t"));
    return true;
}

static bool read_loader(int fd, const Elf64_Ehdr *head, struct sp_program_file *file)
{
    Elf64_Phdr headers[HEADERS_MAX];
    size_t count = head->e_phnum;
    if (head->e_phentsize != sizeof *headers || count > HEADERS_MAX ||
        pread(fd, headers, count * sizeof *headers, (off_t)head->e_phoff) !=
            (ssize_t)(count * sizeof *headers))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type != PT_INTERP)
            continue;
        size_t size = headers[i].p_filesz;
        if (size < 2 || size > sizeof file->by ||
            pread(fd, file->by, size, (off_t)headers[i].p_offset) != (ssize_t)size ||
            file->by[size - 1] != '\0')
            return false;
    }
    return true;
}

void sp_program_file_read(int fd, struct sp_program_file *ret_file)
{
    char name[40];
    union {
        char text[LINE_BYTES];
        Elf64_Ehdr elf;
    } head = {{0}};
    struct sp_program_file *file = ret_file;
    file->kind = SP_PROGRAM_UNREADABLE;
    file->by[0] = file->argument[0] = '\0';
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    sp_auto_fd readable = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = readable < 0 ? -1 : pread(readable, head.text, sizeof head.text, 0);
    if (n > 2 && memcmp(head.text, "#!", 2) == 0 &&
        read_line(head.text, (size_t)n, file))
        file->kind = SP_PROGRAM_TEXT;
    else if (n == (ssize_t)sizeof head.text &&
             memcmp(head.text, ELFMAG, SELFMAG) == 0 &&
             head.elf.e_ident[EI_CLASS] == ELFCLASS64 &&
             read_loader(readable, &head.elf, file))
        file->kind = SP_PROGRAM_ELF;
    if (file->kind == SP_PROGRAM_UNREADABLE)
        file->by[0] = '\0';
}
