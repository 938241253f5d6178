/* Where and why a trace stops being sound. */
#ifndef SP_TRACE_FAULT_H
#define SP_TRACE_FAULT_H

#include <stdint.h>

struct sp_fault {
    uint64_t line;     /* from 1; 0: not a matter of one line */
    uint64_t byte;     /* offset in the file */
    char message[256]; /* one clause, printable, without line and byte */
};

/* Fills *f; returns -1, to be used in a return statement. */
int sp_fault_set(struct sp_fault *f, uint64_t line, uint64_t byte, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

#endif
