#include "run/signer.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/mounts.h"
#include "sys/real_path.h"

struct sp_signer_page {
    struct sp_signing_key key;
    char scratch[SP_KEY_FILE_MAX];
};

static int no_lock(struct sp_error *reterr)
{
    return sp_fail_errno(reterr, SP_E_HOST,
                         "cannot lock memory for the signing key, so that it is never "
                         "swapped out (ulimit -l must allow 64)");
}

/* Where else the file can be got at: another mount of the same file system shows it, too. */
static int check_mounts(const struct sp_signer *signer, const char *path,
                        struct sp_error *reterr)
{
    char other[PATH_MAX];
    if (!sp_mounts_other_name(signer->path, signer->place.device, signer->place.inode,
                              other))
        return 0;
    return sp_fail(
        reterr, SP_E_USAGE,
        "the private key '%.150s' can be read as '%.150s' as well, by another "
        "mount: keep it where only one path leads to it",
        path, other);
}

int sp_signer_open(const char *path, struct sp_signer *ret_signer,
                   struct sp_error *reterr)
{
    struct sp_signer_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return no_lock(reterr);
    ret_signer->page = page;
    int code = 0;
    if (sodium_init() < 0)
        code = sp_fail(reterr, SP_E_HOST, "libsodium does not start");
    else if (sodium_mlock(page, sizeof *page) != 0)
        code = no_lock(reterr);
    if (code == 0)
        code = sp_key_file_private(path, page->scratch, &page->key, &ret_signer->place,
                                   reterr);
    if (code == 0 && !sp_real_path(path, ret_signer->path))
        code = sp_fail_errno(reterr, SP_E_USAGE, "cannot find the key '%.200s'", path);
    if (code == 0)
        code = check_mounts(ret_signer, path, reterr);
    if (code != 0)
        sp_signer_wipe(ret_signer);
    return code;
}

int sp_signer_claim(const struct sp_signer *signer, struct sp_error *reterr)
{
    struct sp_signer_page *page = signer->page;
    if (page == NULL)
        return 0;
    if (sodium_mlock(page, sizeof *page) != 0)
        return no_lock(reterr);
    if (madvise(page, sizeof *page, MADV_WIPEONFORK) != 0)
        return sp_fail_errno(reterr, SP_E_HOST,
                             "cannot keep the signing key out of other processes");
    return 0;
}

const struct sp_signing_key *sp_signer_key(const struct sp_signer *signer)
{
    return signer->page != NULL ? &signer->page->key : NULL;
}

void sp_signer_wipe(struct sp_signer *signer)
{
    if (signer->page == NULL)
        return;
    sodium_munlock(signer->page, sizeof *signer->page); /* wipes it */
    munmap(signer->page, sizeof *signer->page);
    signer->page = NULL;
}
