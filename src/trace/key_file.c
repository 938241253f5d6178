#include "trace/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

/* Up to SP_KEY_FILE_MAX bytes; more is no key. -1 with errno. */
static ssize_t read_all(int fd, char *to)
{
    size_t used = 0;
    while (used < SP_KEY_FILE_MAX) {
        const ssize_t n = pread(fd, to + used, SP_KEY_FILE_MAX - used, (off_t)used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int no_key(const char *path, struct sp_error *reterr)
{
    return sp_fail_errno(reterr, SP_E_USAGE, "cannot read the key '%.200s'", path);
}

/* Reads and parses one. Nothing blocks: a FIFO is no key. `text` is wiped: it may be a private
 * one's. */
static int read_key(enum sp_key_half half, const char *path, char text[SP_KEY_FILE_MAX],
                    uint8_t ret_bytes[SP_KEY_BYTES], struct stat *ret_stat,
                    struct sp_error *reterr)
{
    *ret_stat = (struct stat){0};
    sp_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret_stat) != 0)
        return no_key(path, reterr);
    if (!S_ISREG(ret_stat->st_mode))
        return sp_fail(reterr, SP_E_USAGE, "the key '%.200s' is no regular file", path);
    const ssize_t size = read_all(fd, text);
    int code = size < 0
                   ? no_key(path, reterr)
                   : sp_key_parse(half, text, (size_t)size, path, ret_bytes, reterr);
    sodium_memzero(text, SP_KEY_FILE_MAX);
    return code;
}

int sp_key_file_public(const char *path, struct sp_public_key *ret_key,
                       struct sp_error *reterr)
{
    char text[SP_KEY_FILE_MAX];
    struct stat st;
    return read_key(SP_KEY_PUBLIC, path, text, ret_key->bytes, &st, reterr);
}

static int check_private(const char *path, const struct stat *st,
                         struct sp_error *reterr)
{
    if ((st->st_mode & 077) != 0)
        return sp_fail(
            reterr, SP_E_USAGE,
            "the private key '%.200s' can be read or changed by others (mode "
            "%04o): chmod 600 it, and make a new one if somebody may have "
            "read it",
            path, (unsigned)(st->st_mode & 07777));
    if (st->st_nlink > 1)
        return sp_fail(reterr, SP_E_USAGE,
                       "the private key '%.200s' has another name (a hard link), under "
                       "which the program could read it: remove that one",
                       path);
    return 0;
}

int sp_key_file_private(const char *path, char *scratch, struct sp_signing_key *ret_key,
                        struct sp_key_place *ret_place, struct sp_error *reterr)
{
    struct stat st;
    /* The seed goes where the key is to be: nowhere else in memory. */
    int code = read_key(SP_KEY_PRIVATE, path, scratch, ret_key->secret, &st, reterr);
    /* Last: a public key, which anybody may read, is told as such. */
    if (code == 0)
        code = check_private(path, &st, reterr);
    if (code == 0) {
        uint8_t *seed = (uint8_t *)scratch;
        memcpy(seed, ret_key->secret, SP_KEY_BYTES);
        sp_signing_key_from_seed(seed, ret_key);
        sodium_memzero(seed, SP_KEY_BYTES);
        *ret_place = (struct sp_key_place){.device = st.st_dev, .inode = st.st_ino};
    } else {
        sodium_memzero(ret_key, sizeof *ret_key);
    }
    return code;
}

/* ---- making keys --------------------------------------------------------------------------- */

/* Like rename(), but what stands there already stays: EEXIST. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) != 0) /* a file system that has no such rename */
        return -1;
    unlink(from);
    return 0;
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        size -= (size_t)n;
    }
    return true;
}

/* So that the names survive a crash of the machine as well; where a folder cannot be synced, they
 * usually do. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    sp_auto_fd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}

static int cannot_write(const char *path, struct sp_error *reterr)
{
    if (errno == EEXIST)
        return sp_fail(reterr, SP_E_USAGE,
                       "'%.200s' is there already, and keys are never overwritten: "
                       "choose another prefix, or remove it",
                       path);
    return sp_fail_errno(reterr, SP_E_USAGE, "cannot write '%.200s'", path);
}

/* Under a name of its own first, with nobody else's rights from the first moment on. */
static int write_file(const char *path, mode_t mode, const char *text,
                      struct sp_error *reterr)
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
        return cannot_write(path, reterr);
    }
    sp_auto_fd fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return cannot_write(path, reterr);
    if (!write_all(fd, text, strlen(text)) || fchmod(fd, mode) != 0 || fsync(fd) != 0 ||
        rename_new(fresh, path) != 0) {
        const int err = errno;
        unlink(fresh);
        errno = err;
        return cannot_write(path, reterr);
    }
    sync_folder(path);
    return 0;
}

static int spare(const char *path, struct sp_error *reterr)
{
    struct stat st = {0};
    if (lstat(path, &st) != 0)
        return 0;
    errno = EEXIST;
    return cannot_write(path, reterr);
}

static int write_private(const char *path, const uint8_t seed[SP_KEY_BYTES],
                         struct sp_error *reterr)
{
    char base64[SP_KEY_TEXT + 1];
    char text[256];
    sp_key_to_text(seed, base64);
    snprintf(text, sizeof text,
             "# A private key of sandpit: whoever has it can sign traces. Keep it "
             "secret.\n%s %s\n",
             sp_key_word(SP_KEY_PRIVATE), base64);
    int code = write_file(path, 0600, text, reterr);
    sodium_memzero(base64, sizeof base64);
    sodium_memzero(text, sizeof text);
    return code;
}

static int write_public(const char *path, const struct sp_public_key *key,
                        struct sp_error *reterr)
{
    char base64[SP_KEY_TEXT + 1];
    char fingerprint[SP_FINGERPRINT_TEXT + 1];
    char text[256];
    sp_key_to_text(key->bytes, base64);
    sp_key_fingerprint(key, fingerprint);
    snprintf(text, sizeof text, "# A public key of sandpit, fingerprint %s\n%s %s\n",
             fingerprint, sp_key_word(SP_KEY_PUBLIC), base64);
    return write_file(path, 0644, text, reterr);
}

int sp_key_file_make(const char *prefix, struct sp_public_key *ret_key,
                     struct sp_error *reterr)
{
    char private_path[PATH_MAX];
    char public_path[PATH_MAX];
    uint8_t seed[SP_KEY_BYTES];
    struct sp_signing_key key;
    if (strlen(prefix) > sizeof private_path - 16 || prefix[0] == '\0' ||
        prefix[strlen(prefix) - 1] == '/')
        return sp_fail(reterr, SP_E_USAGE, "'%.200s' is no prefix for files' names",
                       prefix);
    snprintf(private_path, sizeof private_path, "%s.key", prefix);
    snprintf(public_path, sizeof public_path, "%s.pub", prefix);
    if (sodium_init() < 0)
        return sp_fail(reterr, SP_E_HOST, "libsodium does not start");
    int code = spare(private_path, reterr);
    if (code == 0)
        code = spare(public_path, reterr);
    if (code != 0)
        return code;
    randombytes_buf(seed, sizeof seed);
    sp_signing_key_from_seed(seed, &key);
    sp_signing_key_public(&key, ret_key);
    sodium_memzero(&key, sizeof key);
    code = write_private(private_path, seed, reterr);
    sodium_memzero(seed, sizeof seed);
    if (code == 0 && (code = write_public(public_path, ret_key, reterr)) != 0)
        unlink(private_path); /* it has signed nothing yet */
    return code;
}
