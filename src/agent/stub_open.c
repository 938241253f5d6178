/* libc's open family, so that files which native libraries read are recorded. Whether it was
 * Python's own open, announced by an audit event, is for the agent to know. */
#include "agent/stub_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

static int no_function(void)
{
    errno = ENOSYS;
    return -1;
}

static void opened(int dir, const char *path, int flags)
{
    if (sp_stub.file_opened)
        sp_stub.file_opened(dir, path, flags);
}

/* The mode is there only with these flags; reading it otherwise reads what was never
 * passed. */
static int has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define MODE_OF(flags, mode)                                                           \
    mode_t mode = 0;                                                                   \
    if (has_mode(flags)) {                                                             \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode = (mode_t)va_arg(more, unsigned);                                         \
        va_end(more);                                                                  \
    }

SP_EXPORT int open(const char *path, int flags, ...)
{
    SP_REAL(open);
    MODE_OF(flags, mode)
    opened(AT_FDCWD, path, flags);
    return real ? real(path, flags, mode) : no_function();
}

SP_EXPORT int open64(const char *path, int flags, ...)
{
    SP_REAL(open64);
    MODE_OF(flags, mode)
    opened(AT_FDCWD, path, flags);
    return real ? real(path, flags, mode) : open(path, flags, mode);
}

SP_EXPORT int openat(int dir, const char *path, int flags, ...)
{
    SP_REAL(openat);
    MODE_OF(flags, mode)
    opened(dir, path, flags);
    return real ? real(dir, path, flags, mode) : no_function();
}

SP_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
    SP_REAL(openat64);
    MODE_OF(flags, mode)
    opened(dir, path, flags);
    return real ? real(dir, path, flags, mode) : openat(dir, path, flags, mode);
}

/* What programs built with fortify call: an open without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

SP_EXPORT int __open_2(const char *path, int flags)
{
    SP_REAL(__open_2);
    opened(AT_FDCWD, path, flags);
    return real ? real(path, flags) : open(path, flags);
}

SP_EXPORT int __open64_2(const char *path, int flags)
{
    SP_REAL(__open64_2);
    opened(AT_FDCWD, path, flags);
    return real ? real(path, flags) : open(path, flags);
}

SP_EXPORT int __openat_2(int dir, const char *path, int flags)
{
    SP_REAL(__openat_2);
    opened(dir, path, flags);
    return real ? real(dir, path, flags) : openat(dir, path, flags);
}

SP_EXPORT int __openat64_2(int dir, const char *path, int flags)
{
    SP_REAL(__openat64_2);
    opened(dir, path, flags);
    return real ? real(dir, path, flags) : openat(dir, path, flags);
}

static int stream_flags(const char *mode)
{
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
    for (const char *c = mode; *c && *c != ','; c++)
        if (*c == '+')
            flags |= O_RDWR;
    return flags;
}

SP_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    SP_REAL(fopen);
    opened(AT_FDCWD, path, stream_flags(mode));
    return real ? real(path, mode) : NULL;
}

SP_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    SP_REAL(fopen64);
    opened(AT_FDCWD, path, stream_flags(mode));
    return real ? real(path, mode) : fopen(path, mode);
}

SP_EXPORT FILE *freopen(const char *restrict path, const char *restrict mode,
                        FILE *restrict stream)
{
    SP_REAL(freopen);
    if (path)
        opened(AT_FDCWD, path, stream_flags(mode));
    return real ? real(path, mode, stream) : NULL;
}

SP_EXPORT FILE *freopen64(const char *restrict path, const char *restrict mode,
                          FILE *restrict stream)
{
    SP_REAL(freopen64);
    if (path)
        opened(AT_FDCWD, path, stream_flags(mode));
    return real ? real(path, mode, stream) : NULL;
}
