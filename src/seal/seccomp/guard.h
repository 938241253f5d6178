/* Tests of register arguments, as BPF. */
#ifndef SP_SEAL_SECCOMP_GUARD_H
#define SP_SEAL_SECCOMP_GUARD_H

#include "seal/seccomp/bpf.h"
#include "seal/seccomp/calls.h"

/* Adds code that goes to `hit` for the calls that `guard` singles out, to `miss` for
 * the others. Not for SP_GUARD_ALWAYS. */
void sp_guard_add(struct sp_bpf *bpf, enum sp_guard guard, sp_bpf_ref hit,
                  sp_bpf_ref miss);

#endif
