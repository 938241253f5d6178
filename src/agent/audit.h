/* The interpreter's audit events: which of them say something, and to whom it is said. */
#ifndef SP_AGENT_AUDIT_H
#define SP_AGENT_AUDIT_H

struct sp_stub;

/* Installs the hook; before Py_Initialize. 0, or -1 when the interpreter refuses. */
int sp_audit_install(struct sp_stub *stub);

#endif
