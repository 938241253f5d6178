/* The exception of a denied import. */
#ifndef SP_AGENT_DENIAL_H
#define SP_AGENT_DENIAL_H

#include <Python.h>
#include <stddef.h>

/* Raises sandpit.ImportDenied, a ModuleNotFoundError: programs that fall back when a module
 * is missing fall back. */
void sp_denial_import(const char *module, size_t module_size, const char *message);

#endif
