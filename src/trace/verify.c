#include "trace/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "event/event.h"
#include "trace/chain.h"
#include "trace/format.h"
#include "trace/grammar.h"
#include "trace/head.h"
#include "trace/lines.h"
#include "trace/seal.h"
#include "trace/signature.h"

struct check {
    struct sp_verify *out;
    struct sp_chain chain;
    uint64_t line;       /* of the line in hand, from 1 */
    uint64_t offset;     /* of the line in hand */
    uint64_t seq;        /* expected next */
    uint64_t t_ns;       /* of the line before */
    uint64_t block_line; /* where the open block begins */
    uint64_t block_start;
    uint64_t events_sound;
    const struct sp_public_key *key; /* that must have signed; NULL: any, or none */
    bool ended;
};

static int altered(struct check *c, size_t at, const char *what)
{
    c->out->code = SP_VERIFY_ALTERED;
    return sp_fault_set(&c->out->fault, c->line, c->offset + at, "%s", what);
}

static int unreadable(struct check *c, size_t at, const char *what)
{
    c->out->code = SP_VERIFY_UNREADABLE;
    return sp_fault_set(&c->out->fault, c->line, c->offset + at, "%s", what);
}

/* ---- signatures ---------------------------------------------------------------------------- */

#define SIGNATURE_PART  ",\"signature\":\""
#define SIGNATURE_FIXED (sizeof SIGNATURE_PART - 1 + SP_SIGNATURE_TEXT + 1)

/* The start says by whom the trace is to be signed. */
static int read_signer(struct check *c, const char *line, size_t size)
{
    const char *text;
    size_t length;
    if (!sp_grammar_find(line, size, "signer", &text, &length))
        return 0;
    c->out->signature = SP_SIGNED_UNREACHED;
    if (length == SP_KEY_TEXT + 2 && *text == '"' &&
        sp_key_from_text(text + 1, SP_KEY_TEXT, c->out->signer.bytes))
        return 0;
    c->out->signature = SP_SIGNED_NOT;
    return altered(c, (size_t)(text - line), "the signer is no public key");
}

/* Adds the end line to the chain up to `covered`, and keeps what was signed on the way. The
 * signature's text; NULL: there is none in its place. */
static const char *hash_signed(struct check *c, const char *line, size_t covered,
                               const char **hashed, uint8_t ret_chain[SP_CHAIN_BYTES])
{
    const char *part = line + covered - SIGNATURE_FIXED;
    if (covered < SIGNATURE_FIXED ||
        memcmp(part, SIGNATURE_PART, sizeof SIGNATURE_PART - 1) != 0 ||
        line[covered - 1] != '"')
        return NULL;
    sp_chain_add(&c->chain, *hashed, (size_t)(part - *hashed));
    *hashed = part;
    sp_chain_peek(&c->chain, ret_chain);
    return part + sizeof SIGNATURE_PART - 1;
}

static int check_signature(struct check *c, const char *line, size_t covered,
                           const char *signature, const uint8_t chain[SP_CHAIN_BYTES])
{
    struct sp_verify *v = c->out;
    if (signature != NULL && v->signature == SP_SIGNED_NOT)
        return altered(c, (size_t)(signature - line),
                       "a signature, but the start names no key");
    if (v->signature == SP_SIGNED_NOT)
        return 0;
    v->signature = SP_SIGNED_WRONGLY;
    if (signature == NULL)
        return altered(
            c, covered,
            "the start says by which key the trace is signed, but there is no "
            "signature");
    if (!sp_signature_check(&v->signer, chain, signature))
        return altered(
            c, (size_t)(signature - line),
            "the signature is not one of this trace by the key that the start "
            "names");
    v->signature = SP_SIGNED_BY;
    return 0;
}

/* `line` and what is before it since `*hashed` closes a block. */
static int check_seal(struct check *c, const char *line, size_t size, bool last,
                      const char **hashed)
{
    struct sp_seal seal;
    const char *signature = NULL;
    uint8_t signed_chain[SP_CHAIN_BYTES];
    if (!sp_seal_read(line, size, &seal))
        return altered(c, 0, "the line does not end with bytes, digest and chain");
    if (seal.bytes != c->offset + seal.covered)
        return altered(c, seal.covered,
                       "the number of bytes is not where the line stands");
    if (last)
        signature = hash_signed(c, line, seal.covered, hashed, signed_chain);
    sp_chain_add(&c->chain, *hashed, (size_t)(line + seal.covered - *hashed));
    *hashed = line + seal.covered;
    struct sp_chain_link link;
    sp_chain_close(&c->chain, &link);
    if (memcmp(link.digest, seal.digest, SP_CHAIN_HEX) != 0) {
        c->out->code = SP_VERIFY_ALTERED;
        return sp_fault_set(
            &c->out->fault, c->block_line, c->block_start,
            "the block of lines %" PRIu64 " to %" PRIu64 ", bytes %" PRIu64
            " to %" PRIu64 ", does not have the digest that line %" PRIu64 " says",
            c->block_line, c->line, c->block_start, seal.bytes, c->line);
    }
    if (memcmp(link.chain, seal.chain, SP_CHAIN_HEX) != 0)
        return altered(c, (size_t)(seal.chain - line),
                       "the chain does not follow from the blocks before");
    c->block_line = c->line;
    c->block_start = seal.bytes;
    c->out->blocks++;
    return last ? check_signature(c, line, seal.covered, signature, signed_chain) : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool find_uint(const char *line, size_t size, const char *key,
                      uint64_t *ret_value)
{
    const char *text;
    size_t length;
    return sp_grammar_find(line, size, key, &text, &length) &&
           sp_grammar_uint(text, length, ret_value);
}

static int check_first(struct check *c, const struct sp_head *h, const char *line,
                       size_t size)
{
    uint64_t format;
    if (h->kind != SP_KIND_START)
        return altered(c, 0, "the first line is not a start");
    if (!find_uint(line, size, "format", &format))
        return altered(c, 0, "the start does not say which format it is");
    if (format != SP_TRACE_VERSION)
        return unreadable(c, 0, "a format that this version cannot read");
    return read_signer(c, line, size);
}

static int check_lost(struct check *c, const struct sp_head *h, const char *line,
                      size_t size)
{
    uint64_t count;
    uint64_t missing = 0;
    if (!find_uint(line, size, "count", &count))
        return altered(c, 0, "a lost line without its count");
    find_uint(line, size, "missing", &missing);
    if (h->seq < missing || h->seq - missing != c->seq)
        return altered(c, 0,
                       "the numbers that are missing are not those that were lost");
    c->out->lost += count;
    c->seq += missing;
    return 0;
}

static int check_order(struct check *c, const struct sp_head *h, const char *line,
                       size_t size)
{
    if (c->ended)
        return altered(c, 0, "something follows the end");
    if (c->line == 1) {
        if (check_first(c, h, line, size) < 0)
            return -1;
    } else if (h->kind == SP_KIND_START) {
        return altered(c, 0, "a second start");
    }
    if (h->kind == SP_KIND_LOST && check_lost(c, h, line, size) < 0)
        return -1;
    if (h->seq != c->seq)
        return altered(c, 0,
                       h->seq > c->seq ? "numbers are missing before this line"
                                       : "this line's number was there before");
    if (h->t_ns < c->t_ns)
        return altered(c, 0, "time runs backwards");
    c->seq += h->count;
    c->t_ns = h->t_ns;
    return 0;
}

static int check_line(struct check *c, const char *line, size_t size,
                      const char **hashed)
{
    struct sp_head head;
    size_t bad;
    size_t head_bad;
    const bool has_head = sp_head_read(line, size, &head, &head_bad);
    const bool formed = has_head ? sp_grammar_check_from(line, size, head.size, &bad)
                                 : sp_grammar_check(line, size, &bad);
    if (!formed)
        return altered(c, bad, "not well-formed JSON");
    if (!has_head)
        return altered(c, head_bad, "the line does not begin as an event does");
    if (check_order(c, &head, line, size) < 0)
        return -1;
    if (head.kind != SP_KIND_CHECKPOINT && head.kind != SP_KIND_END)
        return 0;
    const bool last = head.kind == SP_KIND_END;
    if (check_seal(c, line, size, last, hashed) < 0)
        return -1;
    c->events_sound = c->seq;
    c->ended = last;
    return 0;
}

static int check_batch(struct check *c, const char *data, size_t size)
{
    const char *hashed = data;
    const char *end = data + size;
    for (const char *line = data; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)(newline - line);
        c->line++;
        if (check_line(c, line, length, &hashed) < 0)
            return -1;
        c->offset += length + 1;
        line = newline + 1;
    }
    sp_chain_add(&c->chain, hashed, (size_t)(end - hashed));
    return 0;
}

const char *sp_signed_word(enum sp_signed signature)
{
    static const char *const words[] = {[SP_SIGNED_NOT] = "none",
                                        [SP_SIGNED_UNREACHED] = "unreached",
                                        [SP_SIGNED_BY] = "valid",
                                        [SP_SIGNED_WRONGLY] = "wrong"};
    return words[signature];
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Anything that at least begins like a trace is one, if an altered one. */
static bool looks_like_trace(const char *data, size_t size)
{
    static const char head[] = "{\"seq\":0,\"t\":";
    static const char kind[] = "\"kind\":\"start\"";
    const char *newline = memchr(data, '\n', size);
    const size_t length = newline == NULL ? size : (size_t)(newline - data);
    return (length >= sizeof head - 1 && memcmp(data, head, sizeof head - 1) == 0) ||
           memmem(data, length < 256 ? length : 256, kind, sizeof kind - 1) != NULL;
}

/* `more`: something that is no whole line is left. */
static void conclude(struct check *c, bool more)
{
    struct sp_verify *v = c->out;
    c->line++;
    if (c->ended && more) {
        altered(c, 0, "something follows the end");
    } else if (c->ended) {
        v->code = SP_VERIFY_SOUND;
        sp_fault_set(&v->fault, c->line - 1, c->offset, "sound and complete");
    } else {
        v->code = SP_VERIFY_CUT;
        sp_fault_set(&v->fault, v->blocks == 0 ? 1 : c->block_line + 1, c->block_start,
                     v->blocks == 0
                         ? "there is neither a checkpoint nor an end"
                         : "sound up to the last checkpoint, but there is no end");
    }
}

/* What is in order may still not be by whom it is asked of. The fault is where the key is named. */
static void require_key(struct check *c)
{
    struct sp_verify *v = c->out;
    if (c->key == NULL || v->code == SP_VERIFY_ALTERED ||
        v->code == SP_VERIFY_UNREADABLE)
        return;
    const bool by_it = v->signature != SP_SIGNED_NOT &&
                       memcmp(c->key, &v->signer, sizeof *c->key) == 0;
    if (v->code == SP_VERIFY_SOUND && v->signature == SP_SIGNED_BY && by_it)
        return;
    char wanted[SP_FINGERPRINT_TEXT + 1];
    char found[SP_FINGERPRINT_TEXT + 1];
    sp_key_fingerprint(c->key, wanted);
    sp_key_fingerprint(&v->signer, found);
    v->refused = true;
    v->code = SP_VERIFY_ALTERED;
    if (by_it) {
        sp_fault_set(&v->fault, c->line, c->offset,
                     "there is no end, and so not the signature by the key %s that is "
                     "asked for",
                     wanted);
    } else if (v->signature == SP_SIGNED_NOT) {
        sp_fault_set(&v->fault, 1, 0,
                     "there is no signature; one by the key %s is "
                     "asked for",
                     wanted);
    } else {
        sp_fault_set(&v->fault, 1, 0,
                     "the key is %s; a signature by the key %s is asked "
                     "for",
                     found, wanted);
    }
}

static void run(struct check *c, struct sp_lines *lines)
{
    bool first = true;
    for (;;) {
        const char *data;
        size_t size;
        const enum sp_lines_result result = sp_lines_read(lines, &data, &size);
        if (result == SP_LINES_ERROR) {
            const char *problem = sp_content_problem(errno);
            if (errno == EBADMSG) {
                c->line++;
                altered(c, 0, problem);
                return;
            }
            c->out->code = SP_VERIFY_UNREADABLE;
            sp_fault_set(&c->out->fault, 0, c->offset, "%s", problem);
            return;
        }
        if (first && result == SP_LINES_TOO_LONG) {
            c->line = 1;
            unreadable(c, 0, "not a trace");
            return;
        }
        if (result == SP_LINES_TOO_LONG) {
            c->line++;
            altered(c, 0, "a line longer than any event can be");
            return;
        }
        if (first && !looks_like_trace(data, size)) {
            c->line = 1;
            unreadable(c, 0, size == 0 ? "an empty file, not a trace" : "not a trace");
            return;
        }
        first = false;
        if (result == SP_LINES_END) {
            conclude(c, size > 0 || sp_content_cut(&lines->content));
            return;
        }
        if (check_batch(c, data, size) < 0)
            return;
    }
}

void sp_verify_fd(int fd, const struct sp_public_key *key, struct sp_verify *ret)
{
    *ret = (struct sp_verify){.code = SP_VERIFY_UNREADABLE};
    struct check c = {.out = ret, .block_line = 1, .key = key};
    if (sp_chain_init(&c.chain) < 0) {
        sp_fault_set(&ret->fault, 0, 0, "libsodium cannot be used");
        return;
    }
    struct sp_lines lines;
    sp_lines_init(&lines, fd);
    run(&c, &lines);
    sp_lines_release(&lines);
    require_key(&c);
    ret->events = c.events_sound;
}

void sp_verify_path(const char *path, const struct sp_public_key *key,
                    struct sp_verify *ret)
{
    sp_auto_fd fd = sp_lines_open(path);
    if (fd < 0) {
        *ret = (struct sp_verify){.code = SP_VERIFY_UNREADABLE};
        sp_fault_set(&ret->fault, 0, 0, "%s",
                     errno == EINVAL ? "not a regular file" : strerror(errno));
        return;
    }
    sp_verify_fd(fd, key, ret);
}
