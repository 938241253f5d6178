/* Audit events of sockets. Where the policy denies the network, the supervisor is asked
 * before the act, so that the exception can name rule and remedy; the kernel would refuse
 * the act anyway. */
#ifndef SP_AGENT_NETWORK_H
#define SP_AGENT_NETWORK_H

#include <Python.h>

int sp_network_socket(const char *operation,
                      PyObject *args); /* (self, family, type, protocol) */
int sp_network_address(const char *operation, PyObject *args); /* (self, address) */

/* (host, ...): where a name lookup was asked for, for when libc turns out to need a server. */
int sp_network_lookup(const char *operation, PyObject *args);

#endif
