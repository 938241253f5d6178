/* Text that reviewed code compiles while it runs: compile(), exec(), eval(). */
#ifndef SP_AGENT_TEXTS_H
#define SP_AGENT_TEXTS_H

#include <Python.h>

int sp_texts_compile(const char *operation,
                     PyObject *args); /* (source, file); always 0 */

#endif
