/* Loading a filter: in the child, after everything else that seals it. */
#ifndef SP_SEAL_SECCOMP_LOAD_H
#define SP_SEAL_SECCOMP_LOAD_H

struct sp_filter;

/* Both put the calling process, which must have one thread and no_new_privs (or
 * CAP_SYS_ADMIN), under the filter for good. Async-signal-safe, and none of their own
 * calls needs the supervisor.
 *
 * The listener (close-on-exec), or a negative errno: EBUSY when a filter above has one.
 * A notified call can be broken off by fatal signals only, where the kernel can do that
 * (5.19). */
int sp_filter_load(const struct sp_filter *filter);

/* For a filter compiled without a listener: 0, or a negative errno. */
int sp_filter_load_without_listener(const struct sp_filter *filter);

#endif
