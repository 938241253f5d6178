/* What the stub sees in libc: opens by native code, name lookups, new threads. */
#ifndef SP_AGENT_NATIVE_H
#define SP_AGENT_NATIVE_H

#include <stddef.h>

struct sp_stub;

void sp_native_install(struct sp_stub *stub);

/* The calling thread writes to the lane for the first time: its end will be an event. */
void sp_native_thread_seen(void);

/* The calling thread is about to start another, with this function (its name is copied). */
void sp_native_thread_function(const char *name, size_t size);

/* An audit event announced an open of this path by this thread: the next open of it in libc
 * is the same act. */
void sp_native_announced(const char *path, size_t size);

#endif
