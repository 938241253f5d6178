/* From ranges of values to jumps, with as few instructions as we know how.
 *
 * A tree of "is it at least K" needs one jump for each border between ranges. System
 * call numbers alternate a lot (allowed, one notified, allowed again), and there a
 * border is dear: such a stretch is cheaper as "is it K: away; else all the same", one
 * jump for two borders. So the ranges are first cut into stretches, each with one
 * common target and a few single values that differ, such that stretches and the tree
 * over them are shortest together; then the tree over the stretches is balanced.
 */
#include "seal/seccomp/bpf.h"

/* More would be shorter still, but each is a step for every call of the stretch. */
#define EXCEPTIONS_MAX 4u

struct stretch {
    uint16_t end;      /* index of the span after the last */
    uint16_t cost;     /* jumps from here to the end of all spans */
    sp_bpf_ref common; /* target of all values but the exceptions */
};

struct cut {
    const struct sp_span *spans;
    size_t count;
    struct stretch best[SP_SPANS_MAX + 1]; /* best cut of the spans from an index on */
    uint16_t starts[SP_SPANS_MAX]; /* the cut chosen: first spans of the stretches */
};

/* How many values a span has, as far as that matters here. */
static uint32_t width(const struct cut *cut, size_t i)
{
    if (i + 1 == cut->count)
        return EXCEPTIONS_MAX + 1;
    return cut->spans[i + 1].first - cut->spans[i].first;
}

/* Tries all stretches that begin at span `i` and lead to `common`. */
static void try_stretches(struct cut *cut, size_t i, sp_bpf_ref common)
{
    uint32_t exceptions = 0;
    for (size_t end = i; end < cut->count; end++) {
        if (cut->spans[end].target != common) {
            uint32_t more = width(cut, end);
            if (more > EXCEPTIONS_MAX || exceptions + more > EXCEPTIONS_MAX)
                return;
            exceptions += more;
        }
        uint32_t rest = end + 1 == cut->count ? 0 : 1u + cut->best[end + 1].cost;
        if (exceptions + rest < cut->best[i].cost)
            cut->best[i] = (struct stretch){(uint16_t)(end + 1),
                                            (uint16_t)(exceptions + rest), common};
    }
}

static size_t choose(struct cut *cut)
{
    for (size_t i = cut->count; i-- > 0;) {
        cut->best[i].cost = UINT16_MAX;
        try_stretches(cut, i, cut->spans[i].target);
        if (i + 1 < cut->count)
            try_stretches(cut, i, cut->spans[i + 1].target);
    }
    size_t stretches = 0;
    for (size_t i = 0; i < cut->count; i = cut->best[i].end)
        cut->starts[stretches++] = (uint16_t)i;
    return stretches;
}

/* The jumps inside one stretch; where a value of it has to enter. */
static sp_bpf_ref add_stretch(struct sp_bpf *bpf, const struct cut *cut, size_t start)
{
    const struct stretch *stretch = &cut->best[start];
    sp_bpf_ref first = stretch->common;
    sp_bpf_ref last = SP_BPF_NEXT;
    for (size_t i = start; i < stretch->end; i++) {
        if (cut->spans[i].target == stretch->common)
            continue;
        for (uint32_t n = 0; n < width(cut, i); n++) {
            last = sp_bpf_add(bpf, BPF_JMP | BPF_JEQ | BPF_K, cut->spans[i].first + n,
                              cut->spans[i].target, SP_BPF_NEXT);
            if (first == stretch->common)
                first = last;
        }
    }
    if (last != SP_BPF_NEXT)
        bpf->lines[last].jf = stretch->common;
    return first;
}

static sp_bpf_ref add_half(struct sp_bpf *bpf, const struct cut *cut, size_t from,
                           size_t to)
{
    if (to - from == 1)
        return add_stretch(bpf, cut, cut->starts[from]);
    size_t middle = from + (to - from) / 2;
    sp_bpf_ref node = sp_bpf_add(bpf, BPF_JMP | BPF_JGE | BPF_K,
                                 cut->spans[cut->starts[middle]].first, 0, 0);
    sp_bpf_ref below = add_half(bpf, cut, from, middle);
    sp_bpf_ref above = add_half(bpf, cut, middle, to);
    bpf->lines[node].jf = below;
    bpf->lines[node].jt = above;
    return node;
}

void sp_bpf_add_tree(struct sp_bpf *bpf, const struct sp_span *spans, size_t count)
{
    SP_BUG_ON(count < 2 || count > SP_SPANS_MAX || spans[0].first != 0);
    struct cut cut;
    cut.spans = spans;
    cut.count = count;
    add_half(bpf, &cut, 0, choose(&cut));
}
