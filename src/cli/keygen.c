/* `sandpit keygen`: makes a pair of keys for signing traces. */
#include <stdio.h>

#include "cli/commands.h"
#include "trace/key_file.h"

int sp_cli_keygen(const void *values, int argc, char **argv)
{
    struct sp_public_key key;
    struct sp_error error;
    char fingerprint[SP_FINGERPRINT_TEXT + 1];
    (void)values;
    if (argc != 1)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "name a prefix for the two files: sandpit keygen PREFIX "
                            "writes PREFIX.key and PREFIX.pub");
    if (sp_key_file_make(argv[0], &key, &error) != 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s", error.message);
    sp_key_fingerprint(&key, fingerprint);
    printf(
        "%s.key signs (sandpit run --sign): keep it secret\n"
        "%s.pub verifies (sandpit verify --key): give it to whoever reads the traces\n"
        "fingerprint %s\n",
        argv[0], argv[0], fingerprint);
    return SP_EXIT_OK;
}
