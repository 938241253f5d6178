/* Exports of any bytes: nothing crashes, and what is written is well-formed, whatever the trace is
 * like and wherever it stops.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/buffer.h"
#include "fuzz.h"
#include "read/export.h"
#include "read/reader.h"
#include "trace/grammar.h"

#define OUTPUT_MAX (256u << 20)

/* What was written, with enough behind it for the check of JSON. */
static void take_output(int fd, struct sp_buffer *ret_text)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    DEMAND(size >= 0 && size < OUTPUT_MAX);
    sp_buffer_init(ret_text, OUTPUT_MAX + SP_GRAMMAR_PADDING + 1);
    char *to = sp_buffer_reserve(ret_text, (size_t)size + SP_GRAMMAR_PADDING + 1);
    DEMAND(to != NULL && pread(fd, to, (size_t)size, 0) == size);
    memset(to + size, 0, SP_GRAMMAR_PADDING + 1);
    sp_buffer_advance(ret_text, (size_t)size);
}

static void check_document(struct sp_buffer *text)
{
    size_t bad;
    DEMAND(text->size > 0 && text->data[text->size - 1] == '\n');
    for (size_t i = 0; i + 1 < text->size; i++)
        if (text->data[i] == '\n')
            text->data[i] = ' ';
    DEMAND(sp_grammar_check(text->data, text->size - 1, &bad));
}

static void check_line(enum sp_export_format format, const char *line, size_t size)
{
    size_t bad;
    if (format != SP_EXPORT_COLLAPSED) {
        DEMAND(sp_grammar_check(line, size, &bad));
        return;
    }
    const char *blank = memrchr(line, ' ', size);
    DEMAND(blank != NULL && blank > line && blank + 1 < line + size);
    for (const char *p = blank + 1; p < line + size; p++)
        DEMAND(*p >= '0' && *p <= '9');
}

static void check_output(enum sp_export_format format, int fd)
{
    struct sp_buffer text;
    take_output(fd, &text);
    if (format == SP_EXPORT_CHROME || format == SP_EXPORT_SPEEDSCOPE) {
        check_document(&text);
    } else {
        for (size_t at = 0; at < text.size;) {
            const char *newline = memchr(text.data + at, '\n', text.size - at);
            DEMAND(newline != NULL);
            const size_t size = (size_t)(newline - text.data) - at;
            check_line(format, text.data + at, size);
            at += size + 1;
        }
    }
    sp_buffer_release(&text);
}

static void export_as(enum sp_export_format format, int fd)
{
    struct sp_reader *r;
    struct sp_export *x;
    struct sp_read_event e;
    struct sp_fault fault = {0};
    bool failed = false;
    lseek(fd, 0, SEEK_SET);
    const int copy = dup(fd);
    if (sp_reader_open_fd(copy, &r, &fault) < 0) {
        close(copy);
        return;
    }
    const int out = memfd_create("output", MFD_CLOEXEC);
    DEMAND(out >= 0 && sp_export_open(format, out, "input", sp_reader_functions(r), &x,
                                      &fault) == 0);
    while (!failed && sp_reader_next(r, &e, &fault) > 0)
        failed = sp_export_add(x, &e, &fault) < 0;
    if (!failed)
        failed = sp_export_finish(x, &fault) < 0;
    if (failed)
        DEMAND(fault.message[0] != '\0');
    else
        check_output(format, out);
    sp_export_free(x);
    sp_reader_free(r);
    close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("input", MFD_CLOEXEC);
    DEMAND(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    for (int format = 0; format < SP_EXPORT_FORMATS; format++)
        export_as((enum sp_export_format)format, fd);
    close(fd);
    return 0;
}
