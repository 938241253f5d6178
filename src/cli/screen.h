/* Text for people: escaped so that a terminal only shows it, cut to a width, coloured when
 * that is wanted. Written to stdout line by line.
 */
#ifndef SP_CLI_SCREEN_H
#define SP_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/functions.h"

enum sp_style {
    SP_STYLE_PLAIN,
    SP_STYLE_STRONG,
    SP_STYLE_FAINT,
    SP_STYLE_GOOD,
    SP_STYLE_BAD,
};

#define SP_SCREEN_LINE_MAX (1u << 20)

struct sp_screen {
    struct sp_buffer line;
    bool color;
    bool styled;    /* something must be reset at the end of the line */
    unsigned width; /* columns; 0: lines are not cut */
    unsigned used;  /* columns of the line in hand */
    bool cut;       /* no more goes into it */
    unsigned lines; /* written */
};

/* The width of stdout: COLUMNS, else the terminal's, else `otherwise`. */
unsigned sp_screen_width(unsigned otherwise);

void sp_screen_init(struct sp_screen *s, bool color, unsigned width);
void sp_screen_release(struct sp_screen *s);

void sp_screen_style(struct sp_screen *s, enum sp_style style);

/* Text of whatever origin. Control characters, bytes that are no UTF-8 and what changes the
 * direction of writing are shown as escapes. */
void sp_screen_text(struct sp_screen *s, const char *text, size_t size);
void sp_screen_put(struct sp_screen *s, struct sp_text text);

/* The same, but what does not fit is cut at its beginning: of a path the last part tells most. */
void sp_screen_tail(struct sp_screen *s, struct sp_text text);

void sp_screen_format(struct sp_screen *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Blanks up to a column, one at the least. */
void sp_screen_column(struct sp_screen *s, unsigned column);

/* Columns that are left; UINT_MAX when lines are not cut. */
unsigned sp_screen_left(const struct sp_screen *s);

/* Ends the line and writes it. */
void sp_screen_end(struct sp_screen *s);

/* Columns that a text takes when it is shown. */
unsigned sp_screen_columns(struct sp_text text);

/* 1234567 as "1,234,567", into one of a few static buffers. */
const char *sp_screen_number(uint64_t value);

#endif
