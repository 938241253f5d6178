#include "cli/screen.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ELLIPSIS       "..."
#define ELLIPSIS_WIDTH 3u

unsigned sp_screen_width(unsigned otherwise)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    char *end;
    if (text != NULL && *text != '\0') {
        const unsigned long columns = strtoul(text, &end, 10);
        if (*end == '\0' && columns >= 20 && columns <= 10000)
            return (unsigned)columns;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return otherwise;
}

void sp_screen_init(struct sp_screen *s, bool color, unsigned width)
{
    *s = (struct sp_screen){.color = color, .width = width};
    sp_buffer_init(&s->line, SP_SCREEN_LINE_MAX);
}

void sp_screen_release(struct sp_screen *s)
{
    sp_buffer_release(&s->line);
}

void sp_screen_style(struct sp_screen *s, enum sp_style style)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m",
                                        "\033[31m"};
    if (!s->color || s->cut)
        return;
    sp_buffer_text(&s->line, codes[style]);
    s->styled = style != SP_STYLE_PLAIN;
}

/* ---- characters ----------------------------------------------------------------------- */

struct character {
    size_t size;      /* bytes it takes in the text */
    unsigned columns; /* when it is shown */
    char shown[12];   /* an escape, or "" when it stands for itself */
};

/* Decodes one well-formed sequence of two to four bytes; size 0 when there is none. */
static size_t decode(const unsigned char *p, size_t left, uint32_t *ret_code)
{
    const size_t n = p[0] < 0xc2   ? 0
                     : p[0] < 0xe0 ? 2
                     : p[0] < 0xf0 ? 3
                     : p[0] < 0xf5 ? 4
                                   : 0;
    if (n == 0 || left < n)
        return 0;
    uint32_t code = p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *ret_code = code;
    return n;
}

/* C1 controls, line separators, marks and overrides of direction, invisible joiners. */
static bool acts_on_terminal(uint32_t c)
{
    return c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xe0000 && c <= 0xe007f);
}

static bool is_wide(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
           (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
           (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) ||
           (c >= 0x20000 && c <= 0x3fffd);
}

static struct character escaped(size_t size, const char *format, unsigned value)
{
    struct character c = {.size = size};
    c.columns = (unsigned)snprintf(c.shown, sizeof c.shown, format, value);
    return c;
}

static struct character next_character(const char *text, size_t left)
{
    const unsigned char *p = (const unsigned char *)text;
    uint32_t code;
    if (p[0] == '\n')
        return escaped(1, "\\n", 0);
    if (p[0] == '\t')
        return escaped(1, "\\t", 0);
    if (p[0] < 0x20 || p[0] == 0x7f)
        return escaped(1, "\\x%02x", p[0]);
    if (p[0] < 0x80)
        return (struct character){.size = 1, .columns = 1};
    const size_t size = decode(p, left, &code);
    if (size == 0)
        return escaped(1, "\\x%02x", p[0]);
    if (acts_on_terminal(code))
        return escaped(size, "\\u%04x", code);
    return (struct character){.size = size, .columns = is_wide(code) ? 2 : 1};
}

unsigned sp_screen_columns(struct sp_text text)
{
    unsigned columns = 0;
    for (size_t i = 0; i < text.size;) {
        const struct character c = next_character(text.data + i, text.size - i);
        columns += c.columns;
        i += c.size;
    }
    return columns;
}

/* ---- lines ---------------------------------------------------------------------------- */

unsigned sp_screen_left(const struct sp_screen *s)
{
    if (s->width == 0)
        return UINT_MAX;
    return s->cut || s->used >= s->width ? 0 : s->width - s->used;
}

/* Whether all of the text fits into what is left of the line. */
static bool fits(const struct sp_screen *s, const char *text, size_t size)
{
    unsigned columns = 0;
    for (size_t i = 0; i < size && columns <= sp_screen_left(s);) {
        const struct character c = next_character(text + i, size - i);
        columns += c.columns;
        i += c.size;
    }
    return columns <= sp_screen_left(s);
}

void sp_screen_text(struct sp_screen *s, const char *text, size_t size)
{
    if (s->cut)
        return;
    const bool whole = s->width == 0 || fits(s, text, size);
    const unsigned keep = whole ? 0 : ELLIPSIS_WIDTH;
    for (size_t i = 0; i < size;) {
        const struct character c = next_character(text + i, size - i);
        if (s->width != 0 && s->used + c.columns + keep > s->width) {
            s->cut = true;
            break;
        }
        if (c.shown[0] != '\0')
            sp_buffer_text(&s->line, c.shown);
        else
            sp_buffer_append(&s->line, text + i, c.size);
        s->used += c.columns;
        i += c.size;
    }
    if (s->cut && s->used + ELLIPSIS_WIDTH <= s->width)
        sp_buffer_text(&s->line, ELLIPSIS);
}

void sp_screen_put(struct sp_screen *s, struct sp_text text)
{
    sp_screen_text(s, text.data, text.size);
}

void sp_screen_tail(struct sp_screen *s, struct sp_text text)
{
    unsigned columns = sp_screen_columns(text);
    const unsigned left = sp_screen_left(s);
    size_t from = 0;
    if (columns > left && left > ELLIPSIS_WIDTH) {
        while (columns > left - ELLIPSIS_WIDTH) {
            const struct character c =
                next_character(text.data + from, text.size - from);
            columns -= c.columns;
            from += c.size;
        }
        sp_screen_text(s, ELLIPSIS, ELLIPSIS_WIDTH);
    }
    sp_screen_text(s, text.data + from, text.size - from);
}

void sp_screen_format(struct sp_screen *s, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        sp_screen_text(s, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void sp_screen_column(struct sp_screen *s, unsigned column)
{
    do
        sp_screen_text(s, " ", 1);
    while (s->used < column && !s->cut);
}

void sp_screen_end(struct sp_screen *s)
{
    struct sp_buffer *b = &s->line;
    if (s->styled)
        sp_buffer_text(b, "\033[0m");
    while (b->size > 0 && b->data[b->size - 1] == ' ')
        b->size--;
    fwrite(b->data, 1, b->size, stdout);
    putchar('\n');
    sp_buffer_clear(b);
    s->styled = false;
    s->cut = false;
    s->used = 0;
    s->lines++;
}

const char *sp_screen_number(uint64_t value)
{
    static char buffers[4][32];
    static unsigned turn;
    char digits[24];
    char *to = buffers[turn++ % 4];
    const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    char *p = to;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = '\0';
    return to;
}
