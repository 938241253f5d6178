/* `sandpit gc`: removes what runs left behind that a crash kept from cleaning up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "run/private_folder.h"

struct tally {
    unsigned found;
    unsigned failed;
};

static void found(void *context, const char *path, enum sp_leftover what)
{
    static const char *const words[] = {
        [SP_LEFTOVER_FOUND] = "left",
        [SP_LEFTOVER_REMOVED] = "removed",
        [SP_LEFTOVER_FAILED] = "cannot remove all of",
    };
    struct tally *tally = context;
    tally->found++;
    tally->failed += what == SP_LEFTOVER_FAILED;
    printf("%s %s\n", words[what], path);
}

/* The folders for temporary files that sandpit and its Python package take, each once. */
static size_t usual_folders(const char *to[8])
{
    const char *const candidates[] = {getenv("TMPDIR"), getenv("TEMP"), getenv("TMP"),
                                      "/tmp", "/var/tmp"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        bool known = candidates[i] == NULL || candidates[i][0] != '/';
        for (size_t k = 0; k < count; k++)
            known = known || strcmp(to[k], candidates[i]) == 0;
        if (!known)
            to[count++] = candidates[i];
    }
    return count;
}

int sp_cli_gc(const void *values, int argc, char **argv)
{
    const struct sp_gc_options *options = values;
    const char *usual[8];
    struct tally tally = {0};
    size_t count = argc > 0 ? 0 : usual_folders(usual);
    for (size_t i = 0; i < count;
         i++) /* one that is not there has nothing left in it */
        (void)sp_private_folder_sweep(usual[i], options->dry_run, found, &tally);
    for (int i = 0; i < argc; i++)
        if (!sp_private_folder_sweep(argv[i], options->dry_run, found, &tally))
            return sp_cli_error(SP_EXIT_BAD_INPUT, "the folder '%s' cannot be read",
                                argv[i]);
    if (tally.found == 0)
        printf("nothing was left behind\n");
    return sp_output_flushed(tally.failed > 0 ? SP_EXIT_NO : SP_EXIT_OK,
                             SP_EXIT_BAD_INPUT);
}
