/* What the kernel will run for a file that is executed: itself, by which loader, or, for a
 * script, by which interpreter.
 */
#ifndef SP_SYS_PROGRAM_FILE_H
#define SP_SYS_PROGRAM_FILE_H

#include <limits.h>

enum sp_program_kind {
    SP_PROGRAM_UNREADABLE, /* or none of the others: binfmt_misc may know it */
    SP_PROGRAM_ELF,        /* `by`: its loader, "" for one that needs none */
    SP_PROGRAM_TEXT,       /* `by`: the interpreter of its `#!` line */
};

struct sp_program_file {
    enum sp_program_kind kind;
    char by[PATH_MAX];
    char argument
        [256]; /* TEXT: what stands behind the interpreter, "" if nothing does */
};

/* `fd`: any descriptor of the file, O_PATH too. */
void sp_program_file_read(int fd, struct sp_program_file *ret_file);

#endif
