/* The exceptions of acts that are denied before the kernel is asked. */
#ifndef SP_AGENT_DENIAL_H
#define SP_AGENT_DENIAL_H

#include <Python.h>
#include <stddef.h>

/* Raises sandpit.ImportDenied, a ModuleNotFoundError: programs that fall back when a module
 * is missing fall back. */
void sp_denial_import(const char *module, size_t module_size, const char *message);

/* Raises PermissionError with the supervisor's sentence; returns -1. */
int sp_denial_permission(int err, const char *message);

#endif
