/* Imports that were tried and whose file is not known yet. */
#ifndef SP_AGENT_WAITING_H
#define SP_AGENT_WAITING_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/code.h"

/* What is known of one import. Texts are cut to fit. */
struct sp_import {
    uint64_t mark;
    uint32_t tid;
    int at_line;
    int64_t interpreter; /* its number; 0: the main one */
    uint16_t module_size;
    uint16_t from_size;
    uint16_t at_size;
    bool direct;
    bool cached;
    bool native;
    bool program; /* named on the command line */
    bool inner;   /* what the interpreter's C code imports for itself */
    char module[256];
    char from[512]; /* "file:line" of the importing code */
    char at[512];
};

/* The frame whose call into C code has led to an import that is being done, as far as that shows; of
 * the calling thread, NULL: none. */
extern __thread sp_frame *sp_import_from_c;

/* How many imports the calling thread has tried of modules that were not loaded. */
extern __thread uint64_t sp_imports_tried;

/* Looks at the calling thread's frames: from where, whether by reviewed code. False: there
 * is no importing frame (the program itself is being started). */
bool sp_import_describe(struct sp_import *import, const char *module,
                        size_t module_size);

/* Writes the event. */
void sp_import_write(const struct sp_import *import, const char *file,
                     size_t file_size);

/* Lets it wait; when too many do, the oldest is written without a file. */
void sp_waiting_add(const struct sp_import *import);

/* Takes this thread's waiting import of that module out; false: none. */
bool sp_waiting_take(const char *module, size_t size, struct sp_import *ret_import);

/* Writes those of this thread whose module is loaded by now without having run any code
 * (built-in ones), or all. */
void sp_waiting_flush(bool all);

/* An import that began at the mark has ended, well or not: what this thread has had waiting
 * since then gets no file any more. */
uint64_t sp_waiting_mark(void);
void sp_waiting_end(uint64_t mark);

#endif
