/* Whose code runs: frames of every supported version behind one face, and which of them are
 * reviewed code (the program, and whatever does not lie under the interpreter's folders).
 *
 * GIL of the frame's interpreter held throughout. Nothing here creates an object or runs
 * Python code.
 */
#ifndef SP_AGENT_CODE_H
#define SP_AGENT_CODE_H

#include <Python.h>
#include <stdbool.h>

#include "agent/lane.h"

#if PY_VERSION_HEX >= 0x030b0000
struct _PyInterpreterFrame;
typedef struct _PyInterpreterFrame sp_frame;
#else
typedef struct _frame sp_frame;
#endif

/* Innermost complete frame of the calling thread, or of `state`; NULL: none. */
sp_frame *sp_frame_top(PyThreadState *state);
sp_frame *sp_frame_back(sp_frame *frame);
PyCodeObject *sp_frame_code(sp_frame *frame); /* borrowed, never NULL */
PyObject *sp_frame_globals(sp_frame *frame);  /* borrowed, may be NULL */
PyObject *sp_frame_argument(sp_frame *frame,
                            int index);   /* borrowed, NULL when unbound */
int sp_frame_line(sp_frame *frame);       /* 0 when unknown */
int sp_frame_position(sp_frame *frame);   /* the instruction, in bytes */
bool sp_frame_at_import(sp_frame *frame); /* it executes an import statement */

enum sp_origin {
    SP_ORIGIN_LIBRARY, /* under {python} */
    SP_ORIGIN_REVIEWED,
    SP_ORIGIN_TEXT, /* "<string>" and the like: as the first caller that has a file */
    SP_ORIGIN_MACHINERY, /* importlib, runpy: import for their callers, looked through */
    SP_ORIGIN_CARRIER, /* pickle, pkgutil: a library that imports for its callers as well */
};

/* By the code's file name alone, remembered per name object. */
enum sp_origin sp_code_origin(PyCodeObject *code);

/* Whether the frame runs reviewed code; text is decided by its callers. */
bool sp_frame_reviewed(sp_frame *frame);

/* Innermost frame of reviewed code that has a file; of text, where no caller has one (-c).
 * NULL: none. */
sp_frame *sp_frame_site(sp_frame *top);

/* Innermost frame that imports for itself: by a statement, or by a call where it is neither of the
 * import system nor of a carrier. NULL: none. */
sp_frame *sp_frame_importer(sp_frame *top);

/* Text of a str as UTF-8, lone surrogates as their bytes of the file system, without
 * raising; points into the object or into a static buffer until the next call. */
const char *sp_text_view(PyObject *text, size_t *ret_size);

/* A stack as text, innermost first; a slot holds little more. */
struct sp_stack_text {
    size_t size;
    char bytes[1200];
};

/* Adds "file:line name\n", or nothing when it does not fit whole. */
void sp_stack_line(struct sp_stack_text *stack, PyCodeObject *code, int line);

/* The number of the subinterpreter whose GIL is held; 0: it is the main one. */
int64_t sp_interpreter_number(void);

/* Adds at (AT_FILE, AT_LINE) of the innermost reviewed frame; and the stack, innermost
 * first, at most 16 frames. */
void sp_record_at(struct sp_lane_record *r);

/* Begins the scratch record with operation and at, which a slot shall hold even where it
 * has no room for a long path. */
struct sp_lane_record *sp_record_act(enum sp_kind kind, const char *operation);
void sp_record_stack(struct sp_lane_record *r);

#endif
