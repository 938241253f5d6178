/* The options of `show`, `export` and `verify`: `sandpit-trace` reads them, `sandpit` completes them. */
#include "cli/trace_commands.h"

#include <string.h>

#include "cli/commands.h"
#include "read/export.h"

static const char *const kind_words[] = {
#define SP_KIND(name, text, from_ring) text,
#include "event/kinds.def"
#undef SP_KIND
    "return", NULL};

static const char *const category_words[] = {"import", "fs",     "network",   "process",
                                             "env",    "limits", "integrity", NULL};

static const char *const color_words[] = {[SP_COLOR_AUTO] = "auto",
                                          [SP_COLOR_ALWAYS] = "always",
                                          [SP_COLOR_NEVER] = "never",
                                          NULL};

static const char *const format_words[] = {
    [SP_EXPORT_JSONL] = "jsonl",
    [SP_EXPORT_CHROME] = "chrome",
    [SP_EXPORT_SPEEDSCOPE] = "speedscope",
    [SP_EXPORT_COLLAPSED] = "collapsed",
    [SP_EXPORT_OTLP] = "otlp",
    [SP_EXPORT_OCSF] = "ocsf",
    NULL,
};

#define SHOW(field)   offsetof(struct sp_show_options, field)
#define EXPORT(field) offsetof(struct sp_export_options, field)
#define VERIFY(field) offsetof(struct sp_verify_options, field)

const struct sp_option sp_show_table[] = {
    {.name = "kind",
     .letter = 'k',
     .type = SP_OPTION_TEXTS,
     .argument = "KIND",
     .offset = SHOW(kinds),
     .words = kind_words,
     .help = "only events of this kind; repeatable"},
    {.name = "category",
     .type = SP_OPTION_TEXT,
     .argument = "CATEGORY",
     .offset = SHOW(category),
     .help = "only import, fs, network, process, env, limits or integrity"},
    {.name = "file",
     .type = SP_OPTION_TEXT,
     .argument = "GLOB",
     .offset = SHOW(file),
     .help = "only events about or from files that match"},
    {.name = "files",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(files),
     .help = "each file: read, written, created, removed, denied, how often, by which "
             "line"},
    {.name = "network",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(network),
     .help = "each name and address: what was done with it, or denied, by which line"},
    {.name = "processes",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(processes),
     .help = "the processes as a tree: what they ran, how long, how they ended"},
    {.name = "timeline",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(timeline),
     .help = "what happened when, in order: repeats folded, pauses shown"},
    {.name = "source",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(source),
     .help =
         "the text of the program; of FILE or DIGEST when that stands behind TRACE"},
    {.name = "tree",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(tree),
     .help = "the processes, beneath each who called what, how often and how long"},
    {.name = "depth",
     .type = SP_OPTION_NUMBER,
     .argument = "N",
     .offset = SHOW(depth),
     .help = "of --tree: so many levels, all functions (else 6, the longest)"},
    {.name = "follow",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(follow),
     .help = "events of a running program as they come (see run --events)"},
    {.name = "json",
     .type = SP_OPTION_FLAG,
     .offset = SHOW(json),
     .help = "print events, or the rows of a view, as JSON Lines"},
    {.name = "color",
     .type = SP_OPTION_WORD,
     .argument = "WHEN",
     .offset = SHOW(color),
     .words = color_words,
     .help = "auto, always or never; NO_COLOR is respected"},
    {.type = SP_OPTION_END},
};

const struct sp_option sp_export_table[] = {
    {.name = "format",
     .letter = 'f',
     .type = SP_OPTION_WORD,
     .argument = "FORMAT",
     .offset = EXPORT(format),
     .words = format_words,
     .help = "jsonl (if not given), chrome, speedscope, collapsed, otlp, ocsf"},
    {.name = "output",
     .letter = 'o',
     .type = SP_OPTION_FILE,
     .argument = "FILE",
     .offset = EXPORT(output),
     .help = "where to (else standard output, as with -)"},
    {.type = SP_OPTION_END},
};

const struct sp_option sp_verify_table[] = {
    {.name = "key",
     .type = SP_OPTION_FILE,
     .argument = "PUBFILE",
     .offset = VERIFY(key),
     .help = "require a signature by this key (see keygen)"},
    {.name = "json",
     .type = SP_OPTION_FLAG,
     .offset = VERIFY(json),
     .help = "print one JSON object for each file"},
    {.name = "quiet",
     .letter = 'q',
     .type = SP_OPTION_FLAG,
     .offset = VERIFY(quiet),
     .help = "print nothing; the exit code says it"},
    {.type = SP_OPTION_END},
};

bool sp_category_known(const char *name)
{
    for (size_t i = 0; category_words[i] != NULL; i++)
        if (strcmp(category_words[i], name) == 0)
            return true;
    return false;
}

const char *sp_category_nearest(const char *name)
{
    return sp_nearest_name(name, category_words);
}
