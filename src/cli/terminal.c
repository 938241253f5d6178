/* What the commands say on a terminal: errors, and whether to use colour. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

#define LINE_BYTES 2048u

/* Writes `text` with every byte that could act on a terminal, or end the line, as \xNN. */
static size_t escape(const char *text, char *ret_line, size_t size)
{
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        bool control =
            *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
        if (used + 5 > size)
            break;
        if (control)
            used += (size_t)snprintf(ret_line + used, size - used, "\\x%02x", *p);
        else
            ret_line[used++] = (char)*p;
    }
    return used;
}

int sp_cli_error(int status, const char *format, ...)
{
    char message[LINE_BYTES];
    char line[2 * LINE_BYTES] = "sandpit: ";
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    used += escape(message, line + used, sizeof line - used - 1);
    line[used++] = '\n';
    ssize_t n = write(STDERR_FILENO, line, used); /* one call: lines do not mix */
    (void)n;
    return status;
}

bool sp_color_wanted(enum sp_color_when when, int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (when != SP_COLOR_AUTO)
        return when == SP_COLOR_ALWAYS;
    if (no_color != NULL && *no_color != '\0')
        return false;
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}
