/* Calls that are answered later.
 *
 * The thread that made one sleeps on, as it would in the kernel; the supervisor waits for
 * nobody. What it waits for is a descriptor that becomes ready, a point in time, or an answer
 * of the resolver. A call is over when its thread is gone, when its time has run out, or when
 * a signal for the thread is waiting and the call is one that signals break off.
 */
#ifndef SP_SUPERVISE_PARKED_H
#define SP_SUPERVISE_PARKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "supervise/address.h"

struct sp_supervisor;
struct sp_answer;

#define SP_PARKED_MAX 1024u /* past that a call fails with EAGAIN */

/* ERESTARTSYS: the kernel begins the call anew after the signal's handler, or lets it fail with
 * EINTR, as the handler was installed. */
#define SP_PARKED_RESTART 512

enum sp_parked_kind {
    SP_PARKED_CONNECT, /* until the connection stands */
    SP_PARKED_QUEUE,   /* a Unix connection: until the listener has room */
    SP_PARKED_SEND,    /* until there is room */
    SP_PARKED_RESOLVE, /* until the resolver answers */
};

struct sp_send; /* sending.h */

struct sp_parked {
    uint64_t id;     /* of the notification; 0: free */
    uint32_t serial; /* tells this call from others that had the place */
    enum sp_parked_kind kind;
    pid_t pid;
    pid_t tid;
    int fd;               /* the guest's own description, ours to close; -1: none */
    bool watched;         /* in the loop's epoll */
    bool interruptible;   /* signals break it off */
    uint64_t again_ns;    /* when to try again without being told, 0: not */
    uint64_t pause_ns;    /* the last pause */
    uint64_t deadline_ns; /* 0: none */
    int late;             /* errno when that has passed */
    int interrupted;      /* errno when a signal has broken it off */
    struct sp_address address; /* CONNECT, QUEUE */
    int object;                /* QUEUE: the socket's node (O_PATH), -1: abstract */
    struct sp_send *send;      /* SEND */
    uint64_t answer_at;        /* RESOLVE: where in the guest the answer goes */
    char host[256];            /* RESOLVE, in normal form */
    struct sp_buffer members;  /* RESOLVE: of the event that tells of it */
};

struct sp_parked_calls {
    struct sp_parked *items[SP_PARKED_MAX]; /* NULL: free */
    unsigned count;
    uint32_t serial;
    uint64_t looked_ns; /* when threads and signals were last looked at */
};

/* A place for a call, filled by the caller but for what this takes from `call`; NULL: too many
 * wait already. */
struct sp_act_call;
struct sp_parked *sp_park(struct sp_act_call *call, enum sp_parked_kind kind);

/* Waits for `events` (EPOLLOUT ...) of parked->fd as well. false: it cannot be waited for. */
bool sp_park_watch(struct sp_supervisor *s, struct sp_parked *parked, uint32_t events);

/* It was no use yet: from now on it is tried again by time, in growing pauses. */
void sp_park_pause(struct sp_supervisor *s, struct sp_parked *parked);

/* Answers, and frees the place. */
void sp_park_answer(struct sp_supervisor *s, struct sp_parked *parked,
                    struct sp_answer answer);
/* Frees it without an answer. */
void sp_park_drop(struct sp_supervisor *s, struct sp_parked *parked);

/* Whether what an epoll event is about is one of them; it is then tried again. */
bool sp_parked_ready(struct sp_supervisor *s, void *about);
/* What time brings: deadlines, repeats, signals, threads that are gone. */
void sp_parked_look(struct sp_supervisor *s, uint64_t now_ns);
/* When it wants to be called next, 0: not. */
uint64_t sp_parked_next_ns(const struct sp_parked_calls *calls, uint64_t now_ns);
/* The one with that serial, NULL: gone. */
struct sp_parked *sp_parked_find(struct sp_parked_calls *calls, uint32_t serial);

void sp_parked_release(struct sp_supervisor *s);

#endif
