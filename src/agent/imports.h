/* Imports: who imports what, from which file, and whether the policy lets them.
 *
 * Three things tell, and together they miss none:
 *  - the audit event `import`: an import statement of a module that is not loaded yet; a
 *    second one, with the file, of an extension module
 *  - the audit event `exec` of a module's code: importlib's own functions, runpy, zip files,
 *    and the file of every module of Python code
 *  - shims in place of builtins.__import__ and the import system's _gcd_import: modules that
 *    are loaded already
 * An import becomes one event: it waits, at most until the import ends, for its file.
 */
#ifndef SP_AGENT_IMPORTS_H
#define SP_AGENT_IMPORTS_H

#include <Python.h>
#include <stddef.h>

/* When the program starts: puts the shims in place. */
void sp_imports_start(void);
/* When the interpreter ends: writes what still waits. */
void sp_imports_stop(void);

/* The module that the command line names (-m): 0, or -1 with an exception set. */
int sp_imports_program(const char *name, size_t size);

/* From the audit hook: 0, or -1 with an exception set. */
int sp_imports_event(const char *operation, PyObject *args); /* (module, file, ...) */
int sp_imports_exec(const char *operation, PyObject *args);  /* (code,) */

#endif
