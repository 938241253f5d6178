/* The system call by which the guest's side of us speaks to the supervisor; not by libc's
 * syscall(): errno belongs to whatever function of the program we run inside of. */
#ifndef SP_RING_CALL_H
#define SP_RING_CALL_H

#include <stdint.h>

#include "ring/ring.h"

/* Result or negative errno. */
static inline int64_t sp_raw_call(uint64_t op, uint64_t a1, uint64_t a2, uint64_t a3)
{
#if defined(__x86_64__)
    int64_t result;
    register uint64_t r10 __asm__("r10") = a3;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((uint64_t)SP_CALL_NR), "D"(op), "S"(a1), "d"(a2), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register uint64_t x8 __asm__("x8") = SP_CALL_NR;
    register uint64_t x0 __asm__("x0") = op;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
                     : "memory");
    return (int64_t)x0;
#else
    (void)op, (void)a1, (void)a2, (void)a3;
    return -38; /* ENOSYS */
#endif
}

#endif
