/* The shared memory between one guest process (the agent in it) and the supervisor.
 *
 * Theory of operation
 * -------------------
 * One sealed memfd per guest process (a "lane"): made by the supervisor, mapped by both.
 * The agent, holding the GIL, writes records and publishes `head`; the supervisor reads up
 * to `head` and publishes `tail`. Everything here can be written by hostile guest code: the
 * supervisor copies a value once, bounds it, then uses the copy. Nothing here is a verdict.
 *
 *   page 0.. : struct sp_ring (config, cursors, slots, ask area, frame layout)
 *   config   : struct sp_ring_config + text, written by the supervisor before it hands out
 *   arena    : functions by id, written once by the agent
 *   folds    : counts per caller-callee pair (level `folded`), updated in place
 *   words    : the ring proper, a power of two of 64-bit words
 *   side     : a small second ring (in struct sp_ring), only EVENT messages, written under a
 *              lock of the agent's by threads that do not hold the main interpreter's GIL
 *              (libc functions interposed meanwhile, interpreters with a GIL of their own).
 *              Drain both; between the two, an event's `ticks` tell the order.
 *
 * The ring carries two things, in the order in which they happened:
 *
 *  - call words (level `all`): bits 63..32 say what, bits 31..0 the ticks since the word
 *    before (saturated; a TIME message precedes a longer gap).
 *        bit 63 return (else call) · bit 62 resume of a generator, or for a return its
 *        yield · bit 61 the return is by an exception · bits 60..32 the function's id, >= 1
 *  - messages: a word whose bits 63..32 are zero: bits 31..24 the type, bits 23..0 the number
 *    of words that follow. They lie contiguously; they may wrap around the end of the ring.
 *
 * Who wakes whom: the agent calls the supervisor (see SP_CALL_NR) with SP_CALL_KICK when the
 * ring is half full, and with SP_CALL_WAIT when it is full; the supervisor also drains before
 * it writes an event of its own about the process, on a timer, and at exit or exec.
 */
#ifndef SP_RING_RING_H
#define SP_RING_RING_H

#include <stdint.h>

#define SP_RING_MAGIC 0x73707231u /* "spr1" */

/* Constants and fields stand in columns with what they mean. */
/* clang-format off */

/* ---- calls from the agent to the supervisor ------------------------------------------ */

/* A system call number that no kernel implements: notified by our filter, ENOSYS without
 * it. Argument 0 is the operation. */
#if defined(__x86_64__)
#define SP_CALL_NR 184 /* tuxcall, never implemented */
#elif defined(__aarch64__)
#define SP_CALL_NR 245 /* unassigned in the generic table */
#endif

enum sp_call_op {
    SP_CALL_HELLO = 1,  /* a1: enum sp_hello, a2: PY_VERSION_HEX, a3: lane of the parent (fork),
                           else 0. Returns a descriptor of this process's ring. */
    SP_CALL_KICK = 2,   /* drain when convenient; returns 0 at once */
    SP_CALL_WAIT = 3,   /* drain, then return 0 */
    SP_CALL_ASK = 4,    /* a question in the ask area; returns 0 allowed, 1 denied (answer text
                           in the ask area) */
    SP_CALL_LOOKUP = 5, /* a1: slot number of a finished name lookup, a2: 1 answered, 0 not.
                           Returns 1 when the lookup was denied, else 0. Several threads may be
                           here at once: the answer text (NUL-terminated) goes into the slot's
                           body, which is the caller's until it withdraws the slot */
    SP_CALL_RESOLVE = 6, /* a1, a2: where struct sp_name_question and sp_name_answer lie
                            (names.h). Returns enum sp_name_result. By the stub itself: any
                            program of the guest may ask */
};

enum sp_hello {
    SP_HELLO_EXEC = 0, /* a fresh image: the agent was loaded */
    SP_HELLO_FORK = 1, /* a forked child that found its parent's lane */
};

/* ---- messages -------------------------------------------------------------------------- */

enum sp_message {
    SP_MSG_TIME = 1,   /* 1 word: absolute ticks; the next call word counts from it */
    SP_MSG_THREAD = 2, /* 2 words: tid, ticks; the words that follow are that thread's */
    SP_MSG_EVENT = 3,  /* struct sp_ring_event, then fields; padded with zeros to a word */
    SP_MSG_TEXT = 4,   /* bytes of source text that the next EVENT with SP_EVENT_TEXT refers to;
                          first word: number of bytes */
    SP_MSG_FOLD = 5,   /* struct sp_ring_fold, moved out of the full table */
    SP_MSG_CALL = 6,   /* struct sp_ring_call: one call told by itself (below level `all`) */
    SP_MSG_TAMPER = 7, /* text: an attempt on the tracer that the agent noticed; padded with zeros */
};
#define SP_TAMPER_TEXT_MAX 200u

#define SP_MESSAGE_WORDS_MAX 8192u /* 64 KiB; longer texts go in pieces */

struct sp_ring_event {
    uint64_t ticks;
    uint32_t tid;
    uint16_t kind; /* enum sp_kind; must be one that sp_kind_from_ring() admits */
    uint16_t flags;
    uint32_t size; /* bytes of fields that follow */
    uint32_t reserved;
};
#define SP_EVENT_TEXT 1u   /* takes the text sent before: adds digest and size */
#define SP_EVENT_NATIVE 2u /* seen in libc, without an event of Python's ("origin":"native") */

/* A field: struct, then `size` bytes (INT and BOOL: 8 bytes, little-endian int64). No padding. */
struct sp_ring_field {
    uint16_t field; /* enum sp_field */
    uint16_t size;
};
#define SP_TEXT_MAX 4096u /* longest text in a field; the agent cuts, the reader refuses */

/* A call of function `callee` (ids of the arena), which gives name, file and line. Of a C function
 * those are the call's: `line` in the file of `caller`. */
struct sp_ring_call {
    uint64_t ticks;
    uint32_t tid;
    uint32_t callee;
    uint32_t caller; /* 0: none known */
    uint32_t depth;  /* of calls known below it */
    uint32_t line;   /* of the call, for a C function; else 0 */
    uint32_t reserved;
};

/* ---- functions -------------------------------------------------------------------------- */

#define SP_FUNCTIONS_MAX 65536u
#define SP_ARENA_BYTES (8u << 20)

/* Function `id` (1..count) lies at arena + functions[id]: this, then name, module and file,
 * not terminated. Offset 0 means not there. */
struct sp_ring_function {
    uint32_t line;
    uint16_t name_size;
    uint16_t module_size;
    uint16_t file_size;
    uint8_t native;
    uint8_t reviewed;
};

/* ---- folded calls ----------------------------------------------------------------------- */

#define SP_FOLDS_MAX 65536u

/* Counts of one caller-callee pair; the first `folds_used` places hold one each. `count` is of the calls that were
 * not written as events of their own, `resumes` of generators that went on; `total` and `self`
 * are the ticks of all of these, without calls and resumes that have not returned. */
struct sp_ring_fold {
    uint32_t caller; /* function id; 0: no caller known */
    uint32_t callee;
    uint64_t count;
    uint64_t resumes;
    uint64_t total;
    uint64_t self;
};

/* ---- acts about to happen ---------------------------------------------------------------- */

/* What an audit event announced and the kernel is about to show: the supervisor takes `at`,
 * stack and text from here when a notification of that thread and class comes. The agent
 * writes the body, then stores `serial` (odd: being written). A thread has at most one act
 * of Python's (it is replaced by its next) and one LOOKUP at a time; act NONE: free. Serials
 * rise over all slots of a lane. */
#define SP_SLOTS 32u
#define SP_SLOT_BYTES 2048u

enum sp_act {
    SP_ACT_NONE,
    SP_ACT_OPEN,    /* an open that can write, create or truncate */
    SP_ACT_FILE,    /* any other change of names or attributes */
    SP_ACT_SOCKET,  /* creation */
    SP_ACT_CONNECT, /* connect, bind, listen, send with an address */
    SP_ACT_PROCESS, /* fork, exec, spawn, kill */
    SP_ACT_LOOKUP,  /* a name lookup inside libc, from its begin to its end */
};

struct sp_ring_slot {
    uint32_t serial;
    uint32_t tid;
    uint16_t act;  /* enum sp_act */
    uint16_t size; /* bytes of fields in body, as in an EVENT message */
    uint32_t reserved;
    uint8_t body[SP_SLOT_BYTES - 16];
};

/* ---- what was denied ------------------------------------------------------------------------ */

/* A call of thread `tid` was refused with `err`: the sentence that says why, for the exception
 * that Python makes of that errno. The supervisor writes it before the call returns, `serial`
 * last (odd: being written, 0: none); whoever shows it, or knows that it is out of date, makes
 * that 0. It is shown while the thread still executes the instruction of Python that led to the
 * call, so that a refusal which nobody looked at does not explain a later error; and for
 * SP_DENIED_AGE_NS at the most. */
#define SP_DENIED_MAX 16u /* threads at once; the oldest goes */
#define SP_SENTENCE_BYTES 1920u
#define SP_DENIED_AGE_NS 5000000000u

struct sp_ring_denied {
    uint32_t serial;
    uint32_t tid;
    int32_t err;
    uint32_t child;   /* 1: the call was of a child that this thread made and that had not become
                         a program of its own: its errno comes to this thread as a number */
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t spot;    /* sp_ring_spot() of the instruction, 0: not known; not of a child's call */
    char text[SP_SENTENCE_BYTES]; /* NUL-terminated */
};

/* A Python instruction that is being executed, from the address of its frame and what the frame
 * says of it (the pointer, or f_lasti). Frames take each other's places: good for a comparison
 * within a short time. */
static inline uint64_t sp_ring_spot(uint64_t frame, uint64_t instruction)
{
    uint64_t spot = frame * 0x9e3779b97f4a7c15u + instruction;
    return frame == 0 ? 0 : spot != 0 ? spot : 1;
}

/* ---- where frames lie ---------------------------------------------------------------------- */

/* Published by the agent for its interpreter, used by the supervisor to walk the frames of a
 * blocked thread (src/supervise/frames.c). Byte offsets into CPython's structs. */
struct sp_ring_frames {
    uint32_t version_hex; /* PY_VERSION_HEX; 0: not published */
    uint32_t flags;       /* SP_FRAMES_* */
    uint64_t threads_head;       /* address of the interpreter's field that points to its first thread state */
    uint16_t thread_next;
    uint16_t thread_native_id;   /* 0: none (before 3.11): thread_ident is compared with the FS base */
    uint16_t thread_ident;       /* pthread_t */
    uint16_t thread_frame;       /* to the frame, or to the cframe when SP_FRAMES_CFRAME */
    uint16_t cframe_frame;
    uint16_t frame_back;
    uint16_t frame_code;
    uint16_t frame_instruction;  /* pointer to the next code unit (3.11+), or int f_lasti */
    uint16_t frame_owner;        /* 3.11+; 0 none */
    uint16_t code_filename;
    uint16_t code_name;
    uint16_t code_qualname;      /* 0: none */
    uint16_t code_firstlineno;
    uint16_t code_linetable;
    uint16_t code_instructions;  /* co_code_adaptive (3.11+) */
    uint16_t bytes_data;
    uint16_t bytes_size;
    uint16_t unicode_length;
    uint16_t unicode_state;
    uint16_t unicode_ascii_data;
    uint16_t unicode_compact_data;
    uint16_t unicode_utf8_size;  /* unused when 0 */
    uint16_t reserved;
};
#define SP_FRAMES_CFRAME 1u /* tstate->cframe->current_frame (3.11, 3.12) */
#define SP_FRAMES_OBJECT 2u /* PyFrameObject chain (3.9, 3.10) */

/* ---- configuration, from the supervisor ---------------------------------------------------- */

enum sp_calls_level {
    SP_CALLS_OFF,
    SP_CALLS_FIRST,
    SP_CALLS_FOLDED,
    SP_CALLS_ALL,
};

/* Offsets are from the start of the config area; texts are NUL-terminated. */
struct sp_ring_config {
    uint32_t size;           /* of the whole area, this struct included */
    uint32_t calls;          /* enum sp_calls_level */
    uint32_t policy_offset;  /* struct sp_policy, flat (src/policy/policy.h) */
    uint32_t policy_size;
    uint32_t agents_offset;  /* folder of the stub and the agents */
    uint32_t preload_offset; /* value of LD_PRELOAD for children: the stub's path */
    uint32_t python_offset;  /* how paths under {python} begin ("/usr/lib/python"), each
                                NUL-terminated, an empty one ends */
    uint32_t program_offset; /* path of the program as it will be seen in co_filename; "" when
                                unknown (-c, -m, -) */
    uint32_t first_pid;      /* pid of the program itself */
    uint32_t lookups;        /* 1: the end of a denied lookup must be told (SP_CALL_LOOKUP) */
    uint32_t trace;          /* 0: no trace is written; only denials matter */
    uint32_t opens;          /* 1: read-only opens are notified too: the agent announces them
                                (ACT_OPEN) and writes no OPEN events; 0: it writes the events */
};
#define SP_CONFIG_BYTES (512u << 10)

/* ---- the whole -------------------------------------------------------------------------------- */

/* How the interpreter has come to its end. */
enum sp_ended {
    SP_ENDED_NOT,         /* it has not: os._exit, a crash */
    SP_ENDED_FINALIZED,   /* it was finalised */
    SP_ENDED_SYSTEM_EXIT, /* ... by Py_Exit, which SystemExit leads to */
};

#define SP_ASK_BYTES 8192u
#define SP_SIDE_WORDS 8192u /* 64 KiB */

struct sp_ring {
    /* written by the supervisor before it hands the ring out */
    uint32_t magic;
    uint32_t lane;         /* number of this lane, given back at a fork */
    uint64_t bytes;        /* of the whole mapping */
    uint64_t config_offset;
    uint64_t arena_offset;
    uint64_t folds_offset;
    uint64_t words_offset;
    uint64_t words_count;  /* power of two */
    uint8_t pad0[8];

    /* written by the agent */
    uint64_t head __attribute__((aligned(64))); /* words written so far */
    uint32_t functions;    /* ids given out so far */
    uint32_t arena_used;   /* bytes */
    uint32_t folds_used;
    uint32_t started;      /* 1: the program itself runs (cpython.run_* was seen) */
    uint64_t fold_lost;    /* calls that found neither room nor id */
    uint64_t lost;         /* messages but calls that found no room; by any thread */
    uint32_t ended;        /* enum sp_ended */
    uint32_t own_locks;    /* subinterpreters whose calls are not seen: see agent/calls.c */

    /* written by the supervisor */
    uint64_t tail __attribute__((aligned(64))); /* words read so far */

    struct sp_ring_frames frames __attribute__((aligned(64)));
    struct sp_ring_slot slots[SP_SLOTS] __attribute__((aligned(64)));

    uint32_t denied_set __attribute__((aligned(64))); /* bit I: denied[I] may hold something */
    struct sp_ring_denied denied[SP_DENIED_MAX] __attribute__((aligned(64)));

    /* one question at a time, under the GIL. Request: an event body (struct sp_ring_event with
     * kind = the act's kind, then fields). Answer: NUL-terminated text. */
    uint8_t ask[SP_ASK_BYTES];
    char answer[2048];

    uint32_t function_offsets[SP_FUNCTIONS_MAX] __attribute__((aligned(64)));

    /* the side ring: messages of whole words as in the ring proper, EVENT only; full: the
     * agent calls SP_CALL_WAIT, which drains both */
    uint64_t side_head __attribute__((aligned(64))); /* by the agent */
    uint64_t side_tail __attribute__((aligned(64))); /* by the supervisor */
    uint64_t side[SP_SIDE_WORDS] __attribute__((aligned(64)));
};

#define SP_WORDS_FOLDED (1u << 17) /* 1 MiB */
#define SP_WORDS_ALL (1u << 21)    /* 16 MiB */

/* clang-format on */

#endif
