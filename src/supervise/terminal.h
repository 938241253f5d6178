/* A pseudo-terminal in the place of the caller's, so that the guest finds a terminal (isatty,
 * colours, line editing, Ctrl-C) without ever holding the caller's own.
 */
#ifndef SP_SUPERVISE_TERMINAL_H
#define SP_SUPERVISE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct sp_terminal {
    int master; /* -1: there is none */
    int slave;  /* the guest's end, until it was handed over */
    int caller; /* the caller's terminal: borrowed */
    bool
        input; /* the caller's terminal is standard input too: it is in raw mode meanwhile */
    struct termios before; /* how it was */
};

/* Whether the caller's `stdio` has a terminal for number `i`. */
bool sp_terminal_is(const int stdio[3], int i);

/* Makes one like the caller's, in size and settings; raw mode begins here when standard input
 * is a terminal and we are its foreground job. 0, or -1 with errno. */
int sp_terminal_open(struct sp_terminal *terminal, const int stdio[3]);

/* The caller's window has changed its size. */
void sp_terminal_resize(const struct sp_terminal *terminal);

/* Whether the typed bytes ask to stop the job (Ctrl-Z): then the guest was stopped, the
 * caller's terminal given back, we have slept until continued, and everything goes on. The
 * byte is removed from data; *size shrinks by one. */
bool sp_terminal_suspend(const struct sp_terminal *terminal, char *data, size_t *size);

/* Ends raw mode. Also for the keeper, after a supervisor that died. */
void sp_terminal_restore(const struct sp_terminal *terminal);

void sp_terminal_close(struct sp_terminal *terminal);

#endif
