#include "trace/fault.h"

#include <stdarg.h>
#include <stdio.h>

int sp_fault_set(struct sp_fault *f, uint64_t line, uint64_t byte, const char *format,
                 ...)
{
    f->line = line;
    f->byte = byte;
    va_list ap;
    va_start(ap, format);
    vsnprintf(f->message, sizeof f->message, format, ap);
    va_end(ap);
    return -1;
}
