/* Between the stub, which any program may have loaded, and the agent, which it loads into a
 * CPython. The stub knows nothing of Python, the agent nothing of interposition. */
#ifndef SP_AGENT_STUB_H
#define SP_AGENT_STUB_H

#include <stdbool.h>
#include <stdint.h>

#define SP_STUB_VERSION 3u

/* Which function of libc a lookup came through; named in the trace. */
struct sp_stub {
    uint32_t
        version; /* SP_STUB_VERSION: both come from one build, or they do not talk */
    uint32_t reserved;

    /* By the stub: puts LD_PRELOAD back into the C environment, for the program's own
     * children (os.environ was built without it). */
    void (*environment_restore)(void);

    /* By the agent; NULL while there is none. Each leaves errno alone. */

    /* pthread_create is about to run. What it gives is for one of the two that follow. */
    void *(*thread_made)(void);
    /* In the new thread, before anything else. */
    void (*thread_begins)(void *made);
    /* There is no new thread. */
    void (*thread_failed)(void *made);
    /* pthread_setspecific is about to run. */
    void (*thread_keeps)(unsigned key, void *value);
    /* exit() was called: by the interpreter that is when SystemExit ends the program. */
    void (*exits)(void);
    /* A file was opened by libc with these flags; `dir` as in openat. Result: the
     * descriptor, or a negative errno. */
    void (*file_opened)(int dir, const char *path, int flags);
    /* libc looks up a name (NULL: an address) through `function`. Returns a mark. */
    int (*lookup_begun)(const char *function, const char *name);
    /* It has ended. True: it was denied, and the sentence that says so is in `message`. */
    bool (*lookup_ended)(int mark, bool answered, char *message, uint32_t message_size);
    /* The text of errno `code` is wanted. NULL, or the sentence that says why the call which
     * gave it was denied: once, valid until this thread asks again. */
    char *(*error_told)(int code);
};

/* The agent's entry, before Py_Initialize. 0: it stays; its functions are in *stub. */
int sp_agent_start(struct sp_stub *stub);

#endif
