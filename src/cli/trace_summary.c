/* The summary of a trace, on one screen of 80 by 24: what the program did, what it tried and
 * was denied, how it ended, and whether the record is sound.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/screen.h"
#include "cli/summary_items.h"
#include "cli/trace_commands.h"
#include "read/summary.h"
#include "trace/lines.h"
#include "trace/verify.h"

#define LINES_MAX    23u /* the prompt needs one */
#define LINES_ENDED  6u
#define COUNT_COLUMN 12u
#define LIST_COLUMN  23u

/* What `start` and `end` say, parsed again from the lines that the summary kept. */
struct outline {
    struct sp_tape start;
    struct sp_tape end;
    bool ended;
    struct sp_items_place place;
};

static bool parse(struct sp_tape *tape, const struct sp_buffer *line)
{
    sp_tape_init(tape);
    return line->size > 0 && sp_tape_parse(tape, line->data, line->size) == SP_TAPE_OK;
}

static struct sp_text text_at(const struct sp_tape *tape, uint32_t i)
{
    if (i == 0 || tape->nodes[i].type != SP_JSON_STRING)
        return (struct sp_text){"", 0};
    return (struct sp_text){tape->nodes[i].text, tape->nodes[i].size};
}

static struct sp_text text_of(const struct sp_tape *tape, const char *key)
{
    return tape->count == 0 ? (struct sp_text){"", 0}
                            : text_at(tape, sp_tape_find(tape, 0, key));
}

/* Of a member that is an object with that member, or plain text. */
static struct sp_text inner_text(const struct sp_tape *tape, const char *key,
                                 const char *inner)
{
    const uint32_t i = tape->count == 0 ? 0 : sp_tape_find(tape, 0, key);
    const uint32_t at = i == 0 ? 0 : sp_tape_find(tape, i, inner);
    return text_at(tape, at != 0 ? at : i);
}

static bool equals(struct sp_text text, const char *to)
{
    return text.size == strlen(to) && memcmp(text.data, to, text.size) == 0;
}

/* ---- the head ------------------------------------------------------------------------- */

/* NAME of `python -m NAME`. */
static struct sp_text module_of(const struct sp_tape *tape)
{
    const struct sp_text none = {"", 0};
    const uint32_t argv = tape->count == 0 ? 0 : sp_tape_find(tape, 0, "argv");
    if (argv == 0 || tape->nodes[argv].type != SP_JSON_ARRAY ||
        !equals(text_of(tape, "program"), "module"))
        return none;
    const uint32_t end = tape->nodes[argv].next;
    for (uint32_t i = argv + 1; i < end; i = tape->nodes[i].next)
        if (equals(text_at(tape, i), "-m") && i + 1 < end)
            return text_at(tape, i + 1);
    return none;
}

static void put_program(struct sp_screen *s, const struct outline *o)
{
    const struct sp_text script = text_of(&o->start, "script");
    const struct sp_text program = text_of(&o->start, "program");
    sp_screen_style(s, SP_STYLE_STRONG);
    const struct sp_text module = module_of(&o->start);
    if (module.size > 0) {
        sp_screen_format(s, "-m ");
        sp_screen_put(s, module);
    } else if (script.size > 0)
        sp_screen_put(s, sp_items_last_part(script));
    else if (program.size > 0)
        sp_screen_put(s, program);
    else
        sp_screen_format(s, "the program");
    sp_screen_style(s, SP_STYLE_PLAIN);
}

static void put_status(struct sp_screen *s, const struct outline *o)
{
    const struct sp_text status = text_of(&o->end, "status");
    if (!o->ended) {
        sp_screen_style(s, SP_STYLE_BAD);
        sp_screen_format(s, "cut short: the trace has no end");
    } else {
        sp_screen_style(s, equals(status, "ok") ? SP_STYLE_GOOD : SP_STYLE_BAD);
        sp_screen_put(s, status);
        sp_screen_style(s, SP_STYLE_PLAIN);
        sp_screen_format(s, ", exit code %" PRId64,
                         sp_tape_int(&o->end, "exit_code", 0));
    }
    sp_screen_style(s, SP_STYLE_PLAIN);
}

static void put_head(struct sp_screen *s, const struct sp_summary *m,
                     const struct outline *o)
{
    const int64_t wall_ns =
        o->ended ? sp_tape_int(&o->end, "wall_ns", (int64_t)m->t_ns) : (int64_t)m->t_ns;
    put_program(s, o);
    sp_screen_format(s, ": ");
    put_status(s, o);
    sp_screen_format(s, ", %.3f s", (double)wall_ns / 1e9);
    const int64_t memory = o->ended ? sp_tape_int(&o->end, "peak_memory_bytes", 0) : 0;
    if (memory > 0)
        sp_screen_format(s, ", %.0f MiB", (double)memory / (1024 * 1024));
    sp_screen_end(s);
}

static void put_circumstances(struct sp_screen *s, const struct outline *o)
{
    const struct sp_text version = inner_text(&o->start, "interpreter", "version");
    const struct sp_text calls = text_of(&o->start, "calls");
    const time_t seconds = (time_t)(sp_tape_int(&o->start, "time", 0) / 1000000000);
    struct tm utc;
    char when[40];
    sp_screen_format(s, "policy ");
    sp_screen_put(s, inner_text(&o->start, "policy", "name"));
    if (version.size > 0) {
        sp_screen_format(s, ", Python ");
        sp_screen_put(s, version);
    }
    if (calls.size > 0) {
        sp_screen_format(s, ", calls ");
        sp_screen_put(s, calls);
    }
    if (seconds > 0 && gmtime_r(&seconds, &utc) != NULL &&
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &utc) > 0)
        sp_screen_format(s, ", %s", when);
    sp_screen_end(s);
}

/* ---- what it did ---------------------------------------------------------------------- */

static void put_row(struct sp_screen *s, const char *name, uint64_t count)
{
    sp_screen_format(s, "  %s", name);
    sp_screen_column(s, COUNT_COLUMN);
    sp_screen_format(s, "%9s", sp_screen_number(count));
    sp_screen_column(s, LIST_COLUMN);
}

static void put_tally(struct sp_screen *s, const char *name, const struct sp_tally *t,
                      const struct outline *o, bool all_named)
{
    if (t->total == 0)
        return;
    put_row(s, name, t->count);
    sp_items_put(s, t, &o->place, all_named);
    sp_screen_end(s);
}

static void put_calls(struct sp_screen *s, const struct sp_summary *m)
{
    const uint64_t calls = m->counts[SP_KIND_CALL];
    if (calls == 0)
        return;
    put_row(s, "calls", calls);
    const uint64_t named = m->counts[SP_KIND_FUNCTION] > m->functions.count
                               ? m->counts[SP_KIND_FUNCTION]
                               : m->functions.count;
    if (named > 0)
        sp_screen_format(s, "of %s functions", sp_screen_number(named));
    sp_screen_end(s);
}

static void put_counted(struct sp_screen *s, const char *name, uint64_t count,
                        const char *what)
{
    if (count == 0)
        return;
    put_row(s, name, count);
    sp_screen_format(s, "%s", what);
    sp_screen_end(s);
}

static void put_did(struct sp_screen *s, const struct sp_summary *m,
                    const struct outline *o)
{
    const unsigned before = s->lines + 1;
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "Did");
    sp_screen_end(s);
    put_tally(s, "imports", &m->imports, o, true);
    put_tally(s, "read", &m->read, o, false);
    put_tally(s, "changed", &m->changed, o, true);
    put_tally(s, "failed", &m->failed, o, false);
    put_tally(s, "network", &m->hosts, o, true);
    put_tally(s, "programs", &m->programs, o, true);
    put_counted(s, "processes", m->processes, "started beside the first");
    put_calls(s, m);
    put_counted(s, "output", m->output_bytes, "bytes printed");
    if (s->lines == before) {
        sp_screen_format(s, "  nothing that is recorded");
        sp_screen_end(s);
    }
}

/* ---- what it was denied --------------------------------------------------------------- */

static void put_violation(struct sp_screen *s, const struct sp_read_violation *v,
                          struct sp_text folder)
{
    sp_screen_format(s, "  ");
    sp_screen_style(s, SP_STYLE_BAD);
    sp_screen_put(s, v->operation);
    sp_screen_format(s, " ");
    sp_screen_put(s, v->target);
    sp_screen_style(s, SP_STYLE_PLAIN);
    if (v->count > 1)
        sp_screen_format(s, " (%s times)", sp_screen_number(v->count));
    if (equals(v->action, "observe"))
        sp_screen_format(s, " (observed, not denied)");
    if (v->at.size > 0) {
        sp_screen_format(s, " at ");
        sp_screen_tail(s, sp_items_shortened(v->at, folder));
    }
    if (v->rule.size > 0) {
        sp_screen_format(s, ": ");
        sp_screen_put(s, v->rule);
    }
    sp_screen_end(s);
}

static void put_hint(struct sp_screen *s, const struct sp_read_violation *v)
{
    if (v->hint.size == 0)
        return;
    sp_screen_style(s, SP_STYLE_FAINT);
    sp_screen_format(s, "    ");
    sp_screen_put(s, v->hint);
    sp_screen_end(s);
}

/* Denials that the end counts and no line tells of: there was no room for them. */
static void put_untold(struct sp_screen *s, uint64_t told, const struct outline *o)
{
    const int64_t counted = o->ended ? sp_tape_int(&o->end, "violations", 0) : 0;
    if (counted <= 0 || (uint64_t)counted <= told)
        return;
    sp_screen_style(s, SP_STYLE_BAD);
    sp_screen_format(s, "  %s more, whose lines are lost",
                     sp_screen_number((uint64_t)counted - told));
    sp_screen_end(s);
}

static void put_denied(struct sp_screen *s, const struct sp_summary *m,
                       const struct outline *o, const char *path)
{
    const struct sp_read_violations *v = &m->violations;
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "Tried and denied");
    sp_screen_style(s, SP_STYLE_PLAIN);
    sp_screen_format(s, v->total == 0 ? ": nothing" : ": %s",
                     sp_screen_number(v->total));
    sp_screen_end(s);
    const unsigned used = s->lines + LINES_ENDED;
    const unsigned room = used + 1 < LINES_MAX ? LINES_MAX - used : 1;
    const bool hints = 2 * v->count <= room;
    const uint32_t shown = hints || v->count <= room ? v->count : room - 1;
    for (uint32_t i = 0; i < shown; i++) {
        put_violation(s, &v->items[i], o->place.folder);
        if (hints)
            put_hint(s, &v->items[i]);
    }
    if (shown < v->count) {
        sp_screen_format(s, "  +%s more: sandpit show --kind violation ",
                         sp_screen_number(v->count - shown));
        sp_screen_text(s, path, strlen(path));
        sp_screen_end(s);
    }
    put_untold(s, v->total, o);
}

/* ---- how it ended --------------------------------------------------------------------- */

static void put_trouble(struct sp_screen *s, const char *name, const struct sp_tally *t,
                        const struct outline *o)
{
    if (t->total == 0)
        return;
    sp_screen_style(s, SP_STYLE_BAD);
    sp_screen_format(s, "  %s: %s, ", name, sp_screen_number(t->total));
    sp_items_put(s, t, &o->place, true);
    sp_screen_end(s);
}

static void put_soundness(struct sp_screen *s, const struct sp_summary *m,
                          const struct sp_verify *v)
{
    if (v != NULL && v->code == SP_VERIFY_ALTERED) {
        sp_screen_style(s, SP_STYLE_BAD);
        sp_screen_format(
            s, "  THE TRACE WAS ALTERED: line %" PRIu64 ", byte %" PRIu64 ": %s",
            v->fault.line, v->fault.byte, v->fault.message);
    } else {
        sp_screen_style(s, SP_STYLE_FAINT);
        sp_screen_format(s, "  %s events, %s", sp_screen_number(m->events),
                         v == NULL                    ? "not verified"
                         : v->code == SP_VERIFY_SOUND ? "verified: sound and complete"
                                                      : v->fault.message);
        if (v != NULL && v->signature == SP_SIGNED_BY) {
            char fingerprint[SP_FINGERPRINT_TEXT + 1];
            sp_key_fingerprint(&v->signer, fingerprint);
            sp_screen_format(s, ", signed by the key %s", fingerprint);
        }
    }
    sp_screen_end(s);
}

/* The exception that ended the program, unless the reason tells it already. */
static void put_exception(struct sp_screen *s, const struct sp_summary *m,
                          struct sp_text reason)
{
    if (m->exceptions.count == 0)
        return;
    const struct sp_tally_item *last = &m->exceptions.items[m->exceptions.count - 1];
    if (memmem(reason.data, reason.size, last->text, last->size) != NULL)
        return;
    sp_screen_format(s, "  ");
    sp_screen_text(s, last->text, last->size);
    sp_screen_end(s);
}

static void put_ended(struct sp_screen *s, const struct sp_summary *m,
                      const struct outline *o, const struct sp_verify *verify)
{
    const struct sp_text reason = text_of(&o->end, "reason");
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "Ended");
    sp_screen_end(s);
    sp_screen_format(s, "  ");
    sp_screen_put(s, reason.size > 0 ? reason
                     : o->ended      ? (struct sp_text){"on its own", 10}
                                     : (struct sp_text){"not recorded", 12});
    sp_screen_end(s);
    put_exception(s, m, reason);
    put_trouble(s, "limits reached", &m->limits, o);
    put_trouble(s, "attempts on the tracer", &m->tampers, o);
    put_trouble(s, "events lost", &m->losses, o);
    put_soundness(s, m, verify);
}

void sp_show_summary(struct sp_screen *s, const char *path,
                     const struct sp_summary *summary, const struct sp_verify *verify)
{
    struct outline o;
    parse(&o.start, &summary->start);
    o.ended = parse(&o.end, &summary->end);
    o.place.folder = text_of(&o.start, "cwd");
    o.place.python = inner_text(&o.start, "interpreter", "path");
    put_head(s, summary, &o);
    put_circumstances(s, &o);
    put_did(s, summary, &o);
    put_denied(s, summary, &o, path);
    put_ended(s, summary, &o, verify);
    sp_tape_release(&o.start);
    sp_tape_release(&o.end);
}
