/* Audit events of files, processes and threads. What the kernel is about to show is announced
 * in a slot; what it does not show (read-only opens, threads) becomes an event.
 *
 * All are called from the audit hook: 0, or -1 with an exception set.
 */
#ifndef SP_AGENT_ACTS_H
#define SP_AGENT_ACTS_H

#include <Python.h>

#include "agent/lane.h"

int sp_acts_open(const char *operation, PyObject *args); /* (path, mode, flags) */
int sp_acts_folder(const char *operation, PyObject *args);
int sp_acts_database(const char *operation,
                     PyObject *args);                    /* (path,): opened by C code */
int sp_acts_path(const char *operation, PyObject *args); /* (path, ...) */
int sp_acts_truncate(const char *operation, PyObject *args); /* (path or fd, length) */
int sp_acts_times(const char *operation, PyObject *args);    /* (path or fd, ...) */
int sp_acts_paths(const char *operation, PyObject *args);    /* (from, to, ...) */
int sp_acts_program(const char *operation, PyObject *args);  /* (program, argv, ...) */
int sp_acts_shell(const char *operation, PyObject *args);    /* os.system */
int sp_acts_process(const char *operation, PyObject *args);  /* ([pid, signal]) */
int sp_acts_thread(const char *operation, PyObject *args);   /* (function, ...) */

/* Item of an event's arguments, or NULL. */
PyObject *sp_acts_item(PyObject *args, Py_ssize_t index);

/* Adds a path (str, bytes) as a field; nothing for a descriptor. */
void sp_acts_add_path(struct sp_lane_record *r, enum sp_field field, PyObject *path);

#endif
