#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fill(struct sp_error *reterr, int code, int err, const char *format,
                 va_list ap)
{
    if (reterr == NULL)
        return;
    memset(reterr, 0, sizeof *reterr);
    reterr->code = code;
    reterr->err = err;
    int n = vsnprintf(reterr->message, sizeof reterr->message, format, ap);
    if (err != 0 && n >= 0 && (size_t)n < sizeof reterr->message - 3)
        snprintf(reterr->message + n, sizeof reterr->message - (size_t)n, ": %s",
                 strerror(err));
    for (char *p = reterr->message; *p != '\0'; p++)
        if (*p == '\n')
            *p = ' ';
}

int sp_fail(struct sp_error *reterr, int code, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fill(reterr, code, 0, format, ap);
    va_end(ap);
    return code;
}

int sp_fail_errno(struct sp_error *reterr, int code, const char *format, ...)
{
    int err = errno;
    va_list ap;
    va_start(ap, format);
    fill(reterr, code, err, format, ap);
    va_end(ap);
    errno = err;
    return code;
}

int sp_error_what(struct sp_error *reterr, const char *what)
{
    if (reterr == NULL)
        return SP_E_INTERNAL;
    snprintf(reterr->what, sizeof reterr->what, "%s", what);
    return reterr->code;
}

void sp_bug(const char *file, int line, const char *condition)
{
    dprintf(STDERR_FILENO, "sandpit: internal error at %s:%d: %s\n", file, line,
            condition);
    abort();
}
