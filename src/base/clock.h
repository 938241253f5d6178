/* Time in nanoseconds, and the processor's tick counter that call records are stamped with. */
#ifndef SP_BASE_CLOCK_H
#define SP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t sp_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t sp_clock_wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A counter of constant rate, the same on every core: the time-stamp counter on x86-64, the
 * virtual counter on aarch64, nanoseconds elsewhere. Its rate is measured against
 * sp_clock_ns() by whoever converts. */
static inline uint64_t sp_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return sp_clock_ns();
#endif
}

#endif
