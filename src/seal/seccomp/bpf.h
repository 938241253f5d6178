/* BPF under construction: lines whose jumps go to lines or to labels, resolved at the
 * end. */
#ifndef SP_SEAL_SECCOMP_BPF_H
#define SP_SEAL_SECCOMP_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seal/seccomp/filter.h"

#define SP_LABELS_MAX 64u

/* Where a jump goes: a line (0 and up), the line that follows, or a label. */
typedef int16_t sp_bpf_ref;
#define SP_BPF_NEXT      ((sp_bpf_ref) - 1)
#define SP_BPF_LABEL(id) ((sp_bpf_ref)(-2 - (int)(id)))

struct sp_bpf_line {
    uint16_t op;
    sp_bpf_ref jt;
    sp_bpf_ref jf;
    uint32_t k;
};

struct sp_bpf {
    struct sp_bpf_line lines[SP_FILTER_MAX];
    int16_t labels[SP_LABELS_MAX]; /* line of each label, once it is placed */
    uint16_t count;
    bool overflow; /* a line did not fit; stays set */
};

/* Appends a line; its number. */
sp_bpf_ref sp_bpf_add(struct sp_bpf *bpf, uint16_t op, uint32_t k, sp_bpf_ref jt,
                      sp_bpf_ref jf);

/* Loads 32 bits of struct seccomp_data: the call's number, or half an argument. */
void sp_bpf_load_nr(struct sp_bpf *bpf);
void sp_bpf_load_low(struct sp_bpf *bpf, unsigned argument);
void sp_bpf_load_high(struct sp_bpf *bpf, unsigned argument);

/* Puts the label at the line that will be added next. */
void sp_bpf_place(struct sp_bpf *bpf, unsigned label);

/* A range of values of what is loaded: from `first` to the next span's. */
struct sp_span {
    uint32_t first;
    sp_bpf_ref target;
};

#define SP_SPANS_MAX 512u

/* Adds jumps that bring each value to its span's target. The first span starts at 0,
 * the spans ascend, and neighbours differ in target; there are at least two. */
void sp_bpf_add_tree(struct sp_bpf *bpf, const struct sp_span *spans, size_t count);

/* Resolves the jumps. SP_E_INTERNAL when the program is too long. */
int sp_bpf_finish(const struct sp_bpf *bpf, struct sp_filter *ret_filter,
                  struct sp_error *reterr) SP_MUST_CHECK;

#endif
