/* The files that keys lie in. */
#ifndef SP_TRACE_KEY_FILE_H
#define SP_TRACE_KEY_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "trace/signature.h"

/* SP_E_USAGE when it cannot be read or holds no public key. */
int sp_key_file_public(const char *path, struct sp_public_key *ret_key,
                       struct sp_error *reterr) SP_MUST_CHECK;

/* Which object a key's file is. */
struct sp_key_place {
    dev_t device;
    ino_t inode;
};

/* Reads a private key: from a regular file, of one name only, that nobody but its owner may read or
 * write. Its bytes come nowhere but into *ret_key and `scratch`, of SP_KEY_FILE_MAX bytes, which is
 * wiped; on failure both are. SP_E_USAGE. */
int sp_key_file_private(const char *path, char *scratch, struct sp_signing_key *ret_key,
                        struct sp_key_place *ret_place, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Makes a pair of keys and writes PREFIX.key, for its owner only, and PREFIX.pub; each appears
 * whole or not at all, and replaces nothing. SP_E_USAGE. */
int sp_key_file_make(const char *prefix, struct sp_public_key *ret_key,
                     struct sp_error *reterr) SP_MUST_CHECK;

#endif
