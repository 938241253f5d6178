/* A machine that runs BPF as seccomp does, written from the meaning of the instructions
 * and not from the generator. It also keeps the rules that the kernel checks at
 * loading.
 */
#ifndef SP_TESTS_UNIT_SEAL_MACHINE_H
#define SP_TESTS_UNIT_SEAL_MACHINE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What a broken program returns: no action has this value. */
#define MACHINE_BROKEN 0x0000dead0000beefu

static inline bool machine_condition(uint16_t op, uint32_t a, uint32_t k)
{
    switch (BPF_OP(op)) {
    case BPF_JEQ:
        return a == k;
    case BPF_JGE:
        return a >= k;
    case BPF_JGT:
        return a > k;
    default:
        return (a & k) != 0;
    }
}

/* Runs to a return; MACHINE_BROKEN when the program leaves its code or uses what
 * seccomp does not have. */
static inline uint64_t machine_run(const struct sock_filter *code, size_t count,
                                   const struct seccomp_data *data, unsigned *steps)
{
    uint32_t a = 0;
    for (size_t pc = 0; pc < count; pc++) {
        const struct sock_filter *line = &code[pc];
        if (steps != NULL)
            *steps += 1;
        switch (BPF_CLASS(line->code)) {
        case BPF_LD:
            if (line->code != (BPF_LD | BPF_W | BPF_ABS) || line->k % 4 != 0 ||
                line->k > sizeof(*data) - 4)
                return MACHINE_BROKEN;
            memcpy(&a, (const char *)data + line->k, 4);
            break;
        case BPF_ALU:
            if (line->code != (BPF_ALU | BPF_AND | BPF_K))
                return MACHINE_BROKEN;
            a &= line->k;
            break;
        case BPF_JMP:
            if (BPF_OP(line->code) == BPF_JA)
                pc += line->k;
            else
                pc += machine_condition(line->code, a, line->k) ? line->jt : line->jf;
            break;
        case BPF_RET:
            return line->code == (BPF_RET | BPF_K) ? line->k : MACHINE_BROKEN;
        default:
            return MACHINE_BROKEN;
        }
    }
    return MACHINE_BROKEN;
}

#endif
