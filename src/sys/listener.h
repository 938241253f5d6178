/* The seccomp user notification listener: receive, answer, hand in descriptors. */
#ifndef SP_SYS_LISTENER_H
#define SP_SYS_LISTENER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* 0; -EAGAIN when there is nothing to receive after all (the caller was killed, or a signal
 * took it away); another negative errno when the listener is unusable. */
int sp_listener_receive(int fd, struct seccomp_notif *ret_notification);

/* Whether the notification is still waiting: false means that whatever was read about its
 * process must not be used. */
bool sp_listener_valid(int fd, uint64_t id);

/* Answers. -ENOENT when the caller is gone. */
int sp_listener_continue(int fd, uint64_t id);
int sp_listener_return(int fd, uint64_t id, int64_t value);
int sp_listener_refuse(int fd, uint64_t id, int error); /* error: a positive errno */

/* Answers with a descriptor: `source` of ours appears in the caller's table and is the call's
 * result. Falls back to two steps where the kernel lacks the one. */
int sp_listener_give(int fd, uint64_t id, int source, bool close_on_exec);

/* The first of two steps: `source` appears in the caller's table, under the number that is the
 * result, and the caller waits on. -EINTR: it can be done again. A signal before the call is answered
 * can leave the descriptor behind in the caller (before 5.19); it is one the caller may have. */
int sp_listener_place(int fd, uint64_t id, int source, bool close_on_exec);

/* Asks the kernel to wake whom a call or an answer is for on the processor it comes from (6.6); no
 * harm if refused. */
bool sp_listener_wake_locally(int fd);

#endif
