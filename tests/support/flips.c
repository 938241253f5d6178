/* A path in memory that another thread, process or mapping changes all the time between two of the
 * same length, while calls take it. For each try that came to something a number is counted:
 *
 *     flips WAY FLIPPER TRIES GRANTED DENIED
 *
 * prints "yes no other strange raced": tries that were done, refused with EACCES, ended otherwise,
 * those that touched what is denied as far as this program can see, and those in which the path was
 * seen to be another at the end than at the start.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char *path;     /* what is passed, and changes */
static char *argument; /* an argument of a program, which changes too */
static const char *granted;
static const char *denied;
static volatile int *done;
static char side[4096]; /* a name beside the granted one */
static long strange;

static void flip_once(unsigned i)
{
    const char *name = i & 1 ? denied : granted;
    size_t n = strlen(granted);
    for (size_t at = 0; at < n; at++)
        if (granted[at] != denied[at])
            ((volatile char *)path)[at] = name[at];
    *(volatile char *)argument = i & 1 ? 'b' : 'a';
}

static void *flip(void *unused)
{
    for (unsigned i = 0; !*done; i++)
        flip_once(i);
    return unused;
}

static int flip_process(void *unused)
{
    flip(unused);
    _exit(0);
}

/* From outside this process's memory: refused, and nothing changes. */
static int write_from_outside(void)
{
    pid_t parent = getpid();
    pid_t child = fork();
    int status;
    if (child == 0) {
        struct iovec from = {(void *)denied, strlen(denied)};
        struct iovec to = {path, strlen(denied)};
        _exit(process_vm_writev(parent, &from, 1, &to, 1, 0) < 0 ? errno : 0);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/* ---- what is done with the path; 0 or -1 and errno -------------------------------------------- */

static int read_it(void)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -1;
    if (read(fd, text, sizeof text - 1) < 0 || strncmp(text, "granted", 7) != 0)
        strange++;
    close(fd);
    return 0;
}

static int write_it(void)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    if (fd < 0)
        return -1;
    if (write(fd, "!", 1) != 1)
        strange++;
    close(fd);
    return 0;
}

static int truncating_open(void)
{
    int fd = open(path, O_RDONLY | O_TRUNC);
    return fd < 0 ? -1 : close(fd);
}

/* What is done is undone, for the next try. */
static int create_it(void)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (fd < 0)
        return -1;
    close(fd);
    return unlink(granted) == 0 ? 0 : (strange++, 0);
}

static int unlink_it(void)
{
    if (unlink(path) != 0)
        return -1;
    int fd = open(granted, O_CREAT | O_EXCL | O_WRONLY, 0644);
    return fd < 0 ? (strange++, 0) : close(fd);
}

static int rename_it(void)
{
    if (rename(path, side) != 0)
        return -1;
    return rename(side, granted) == 0 ? 0 : (strange++, 0);
}

static int rename_over(void)
{
    int fd = open(side, O_CREAT | O_WRONLY, 0644);
    close(fd);
    return rename(side, path);
}

static int link_it(void)
{
    if (link(path, side) != 0)
        return -1;
    return unlink(side);
}

static int mkdir_it(void)
{
    if (mkdir(path, 0755) != 0)
        return -1;
    return rmdir(granted) == 0 ? 0 : (strange++, 0);
}

static int symlink_it(void)
{
    if (symlink("nowhere", path) != 0)
        return -1;
    return unlink(granted) == 0 ? 0 : (strange++, 0);
}

static int chmod_it(void)
{
    return chmod(path, 0600);
}
static int truncate_it(void)
{
    return truncate(path, 3);
}
static int chown_it(void)
{
    return chown(path, (uid_t)-1, (gid_t)-1);
}
static int utime_it(void)
{
    return utimes(path, (struct timeval[2]){{1000, 0}, {1000, 0}});
}
static int xattr_it(void)
{
    return setxattr(path, "user.a", "a", 1, 0);
}

static int execute_it(void)
{
    char *arguments[] = {(char *)"program", argument, NULL};
    int status;
    pid_t child = fork();
    if (child == 0) {
        execve(path, arguments, (char *[]){NULL});
        _exit(errno == EACCES ? 101 : 102);
    }
    waitpid(child, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 103;
    if (code >= 101) {
        errno = code == 101 ? EACCES : EIO;
        return -1;
    }
    if (code != 7) /* the granted program's */
        strange++;
    return 0;
}

static const struct {
    const char *name;
    int (*act)(void);
} ways[] = {
    {"read", read_it},
    {"write", write_it},
    {"open-truncate", truncating_open},
    {"create", create_it},
    {"unlink", unlink_it},
    {"rename", rename_it},
    {"rename-over", rename_over},
    {"link", link_it},
    {"mkdir", mkdir_it},
    {"symlink", symlink_it},
    {"chmod", chmod_it},
    {"truncate", truncate_it},
    {"chown", chown_it},
    {"utime", utime_it},
    {"setxattr", xattr_it},
    {"exec", execute_it},
};

static void start(const char *flipper)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    pthread_t thread;
    if (strcmp(flipper, "thread") == 0)
        pthread_create(&thread, NULL, flip, NULL);
    else if (strcmp(flipper, "clone") == 0) {
        if (clone(flip_process, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) < 0)
            exit(3);
    } else if (fork() == 0) /* the page is shared */
        flip_process(NULL);
}

int main(int argc, char **argv)
{
    long yes = 0, no = 0, other = 0, raced = 0, tries = atol(argv[3]);
    char *shared =
        mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 6 || shared == MAP_FAILED)
        return 2;
    path = shared;
    argument = shared + 4096;
    done = (volatile int *)(shared + 8192);
    granted = argv[4];
    denied = argv[5];
    strcpy(path, granted);
    strcpy(argument, "a");
    snprintf(side, sizeof side, "%s.side", granted);
    if (strcmp(argv[2], "outside") == 0) {
        int error = write_from_outside();
        printf("%d %d\n", error, strcmp(path, granted) == 0);
        return 0;
    }
    start(argv[2]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, argv[1]) != 0)
            continue;
        /* On a busy machine the other one may not get to run for long: both paths are met all the
         * same, and it goes on until there was a race at all. */
        for (long n = 0; n < tries || (raced == 0 && n < tries * 500); n++) {
            sched_yield();
            flip_once((unsigned)n);
            int result = ways[i].act();
            raced += strcmp(path, n & 1 ? denied : granted) != 0;
            yes += result == 0;
            no += result != 0 && errno == EACCES;
            other += result != 0 && errno != EACCES;
        }
    }
    *done = 1;
    printf("%ld %ld %ld %ld %ld\n", yes, no, other, strange, raced);
    return 0;
}
