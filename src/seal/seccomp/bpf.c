/* Lines, labels and jumps of a BPF program. */
#include "seal/seccomp/bpf.h"

#include <linux/seccomp.h>

sp_bpf_ref sp_bpf_add(struct sp_bpf *bpf, uint16_t op, uint32_t k, sp_bpf_ref jt,
                      sp_bpf_ref jf)
{
    if (bpf->count == SP_FILTER_MAX) {
        bpf->overflow = true;
        return SP_FILTER_MAX - 1;
    }
    bpf->lines[bpf->count] = (struct sp_bpf_line){op, jt, jf, k};
    return (sp_bpf_ref)bpf->count++;
}

static void load(struct sp_bpf *bpf, size_t offset)
{
    sp_bpf_add(bpf, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, SP_BPF_NEXT,
               SP_BPF_NEXT);
}

void sp_bpf_load_nr(struct sp_bpf *bpf)
{
    load(bpf, offsetof(struct seccomp_data, nr));
}

/* Both supported architectures are little-endian: the low half comes first. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arguments are loaded as on a little-endian machine"
#endif

void sp_bpf_load_low(struct sp_bpf *bpf, unsigned argument)
{
    load(bpf, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
}

void sp_bpf_load_high(struct sp_bpf *bpf, unsigned argument)
{
    load(bpf, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) +
                  sizeof(uint32_t));
}

void sp_bpf_place(struct sp_bpf *bpf, unsigned label)
{
    SP_BUG_ON(label >= SP_LABELS_MAX);
    bpf->labels[label] = (int16_t)bpf->count;
}

/* The offset of a jump from line `from`; a negative number for one that cannot be made.
 * */
static int offset_to(const struct sp_bpf *bpf, unsigned from, sp_bpf_ref to)
{
    if (to == SP_BPF_NEXT)
        return 0;
    int line = to >= 0 ? to : bpf->labels[-2 - to];
    int offset = line - (int)from - 1;
    return offset > UINT8_MAX ? -1 : offset;
}

int sp_bpf_finish(const struct sp_bpf *bpf, struct sp_filter *ret_filter,
                  struct sp_error *reterr)
{
    if (bpf->overflow)
        return sp_fail(reterr, SP_E_INTERNAL,
                       "the system call filter is longer than %u", SP_FILTER_MAX);
    for (unsigned i = 0; i < bpf->count; i++) {
        const struct sp_bpf_line *line = &bpf->lines[i];
        int jt = offset_to(bpf, i, line->jt);
        int jf = offset_to(bpf, i, line->jf);
        SP_BUG_ON(jt < 0 || jf < 0);
        ret_filter->code[i] =
            (struct sock_filter)BPF_JUMP(line->op, line->k, (uint8_t)jt, (uint8_t)jf);
    }
    ret_filter->count = bpf->count;
    return 0;
}
