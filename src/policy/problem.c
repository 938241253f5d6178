#include "policy/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors are kept before warnings, should there be too many. */
static struct sp_problem *take(struct sp_problems *problems, bool warning)
{
    struct sp_problem *p = NULL;
    problems->errors += !warning;
    if (problems->count++ < SP_PROBLEMS_MAX)
        return &problems->items[problems->count - 1];
    for (unsigned i = 0; i < SP_PROBLEMS_MAX && !warning; i++)
        if (problems->items[i].warning)
            p = &problems->items[i];
    return p;
}

static void fill(struct sp_problem *p, const char *source, unsigned line,
                 unsigned column, bool warning, const char *format, va_list arguments)
{
    if (p == NULL)
        return;
    *p = (struct sp_problem){.line = line, .column = column, .warning = warning};
    snprintf(p->source, sizeof p->source, "%s", source);
    vsnprintf(p->message, sizeof p->message, format, arguments);
}

void sp_problem_add(struct sp_problems *problems, const char *source, unsigned line,
                    unsigned column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(take(problems, false), source, line, column, false, format, arguments);
    va_end(arguments);
}

void sp_problem_warn(struct sp_problems *problems, const char *source, unsigned line,
                     unsigned column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(take(problems, true), source, line, column, true, format, arguments);
    va_end(arguments);
}

unsigned sp_problems_kept(const struct sp_problems *problems)
{
    return problems->count < SP_PROBLEMS_MAX ? problems->count : SP_PROBLEMS_MAX;
}

static int by_place(const void *a, const void *b)
{
    const struct sp_problem *x = a;
    const struct sp_problem *y = b;
    int order = strcmp(x->source, y->source);
    return order != 0               ? order
           : x->line != y->line     ? (x->line < y->line ? -1 : 1)
           : x->column != y->column ? (x->column < y->column ? -1 : 1)
                                    : 0;
}

void sp_problems_sort(struct sp_problems *problems, unsigned from)
{
    unsigned kept = sp_problems_kept(problems);
    if (from < kept)
        qsort(problems->items + from, kept - from, sizeof *problems->items, by_place);
}
