#include "cli/problems.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void sp_print_escaped(const char *text, FILE *to)
{
    sp_auto_buffer b;
    sp_buffer_init(&b, 4096);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || *at == '\t')
            sp_buffer_append(&b, at, 1);
        else {
            size_t n = strcspn(at, "\"\\\t");
            sp_json_chars(&b, at, n, true);
            at += n - 1;
        }
    }
    if (!b.failed)
        fwrite(b.data, 1, b.size, to);
}

/* The line, and below it a mark at the column, which counts characters. */
static void print_excerpt(const struct sp_problem *p, FILE *to)
{
    fputs("    ", to);
    sp_print_escaped(p->excerpt, to);
    fputs("\n    ", to);
    const char *at = p->excerpt;
    for (unsigned column = 1; column < p->column && *at != '\0'; column++) {
        fputc(*at == '\t' ? '\t' : ' ', to);
        for (at++; ((unsigned char)*at & 0xc0) == 0x80; at++)
            ;
    }
    fputs("^\n", to);
}

void sp_problems_print(const struct sp_problems *problems, FILE *to)
{
    unsigned kept = sp_problems_kept(problems);
    for (unsigned i = 0; i < kept; i++) {
        const struct sp_problem *p = &problems->items[i];
        sp_print_escaped(p->source[0] != '\0' ? p->source : "policy", to);
        if (p->line > 0)
            fprintf(to, ":%u:%u", p->line, p->column);
        fprintf(to, ": %s: ", p->warning ? "warning" : "error");
        sp_print_escaped(p->message, to);
        fputc('\n', to);
        if (p->excerpt[0] != '\0')
            print_excerpt(p, to);
    }
    if (kept < problems->count)
        fprintf(to, "and %u more\n", problems->count - kept);
}
