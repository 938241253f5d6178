"""A guest that hides what it asks for: where arguments cannot be read nothing is done, and no
program starts unrecorded."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("cc"),
]

START = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"


@pytest.fixture
def build(tmp_path):
    def compile_(source, name):
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(
            [
                "cc",
                "-O2",
                "-pthread",
                "-static",
                "-o",
                tmp_path / name,
                tmp_path / f"{name}.c",
            ],
            check=True,
        )
        return tmp_path / name

    return compile_


# Makes a file that runs with its owner's rights, opens another, renames it.
CHANGES = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
int main(int argc, char **argv)
{
    const char *folder = argv[argc - 1]; /* a "#!" line comes before it */
    char made[4096], moved[4096];
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    open(made, O_WRONLY | O_CREAT, 0755);
    chmod(made, 04755);
    rename(made, moved);
    return 0;
}
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
@pytest.mark.parametrize("way", ["program", "interpreter"])
def test_an_execute_only_program_changes_nothing_unseen(
    sandpit, build, tmp_path, policy, way
):
    program = build(CHANGES, "changes")
    program.chmod(0o111)
    start = program
    if way == "interpreter":
        start = tmp_path / "start"
        start.write_text(f"#!{program}\n")
        start.chmod(0o755)
    script = (
        "import subprocess, sys\n"
        "try: subprocess.run(sys.argv[1:])\n"
        "except PermissionError: pass\n"
    )
    inside = tmp_path / "inside"
    inside.mkdir()
    sandpit.plain(script, start, inside)
    assert stat.S_IMODE((inside / "moved").stat().st_mode) == 0o4755
    (inside / "moved").unlink()
    done = sandpit.run(script, start, inside, options=("--policy", policy))
    assert done.returncode == 0, done.stderr
    assert list(inside.iterdir()) == []
    told = sandpit.events("tamper" if policy == "trace-only" else "violation")
    assert {e["category"] for e in told} == {"integrity"}
    assert sandpit.verify() == 0


# The page with the path can be read only now and then: by the kernel, when it is lucky.
BLINKING = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
static char *page;
static volatile int done;
static void *blink(void *u)
{
    while (!done) {
        mprotect(page, 4096, PROT_NONE);
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
    }
    return u;
}
int main(int argc, char **argv)
{
    struct stat st = {0};
    pthread_t t;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, argv[1]);
    pthread_create(&t, NULL, blink, NULL);
    for (int i = 0; i < atoi(argv[2]) && !(st.st_mode & S_ISUID); i++) {
        chmod(page, 04755);
        stat(argv[1], &st);
    }
    done = 1;
    puts(st.st_mode & S_ISUID ? "set" : "never");
    (void)argc;
    return 0;
}
"""


def test_a_path_that_cannot_be_read_is_not_left_to_the_kernel(sandpit, build, tmp_path):
    program = build(BLINKING, "blinking")
    target = tmp_path / "target"
    target.write_text("")
    assert sandpit.plain(START, program, target, 100000).stdout == "set\n"
    target.chmod(0o644)
    done = sandpit.run(START, program, target, 5000, options=("--policy", "no-network"))
    assert done.stdout == "never\n", done.stderr


# Each child becomes a program that gives the supervisor nothing to notice afterwards.
QUIET = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    static const char *const ways[] = {"memory", "exit", "kill"};
    if (argc > 1) {
        if (strcmp(argv[1], "exit") == 0)
            syscall(SYS_exit, 0);
        if (strcmp(argv[1], "kill") == 0)
            kill(getpid(), SIGKILL);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        char *arguments[] = {argv[0], (char *)ways[i], NULL};
        if (fork() == 0) {
            char part[65536];
            ssize_t n;
            int self = open(argv[0], O_RDONLY);
            int memory = memfd_create("copy", 0);
            while (i == 0 && (n = read(self, part, sizeof part)) > 0)
                (void)!write(memory, part, n);
            close(self);
            if (i == 0)
                syscall(SYS_execveat, memory, "", arguments, environ, AT_EMPTY_PATH);
            else
                execv(argv[0], arguments);
            _exit(9);
        }
        wait(NULL);
    }
    return 0;
}
"""


def test_no_program_starts_unrecorded(sandpit, build):
    program = build(QUIET, "quiet")
    done = sandpit.run(START, program, options=("--policy", "trace-only"))
    assert done.returncode == 0, done.stderr
    started = [e["argv"][1:] for e in sandpit.events("exec")]
    assert sorted(started) == [[], ["exit"], ["kill"], ["memory"]]
    assert sandpit.verify() == 0


def test_a_program_that_is_not_there_is_not_told_as_started(sandpit):
    script = (
        "import os, subprocess\n"
        "os.environ['PATH'] = '/nowhere:/tmp:' + os.environ['PATH']\n"
        "subprocess.run(['true'])\n"
        "try: subprocess.run(['/nowhere/at/all'])\n"
        "except FileNotFoundError: pass\n"
    )
    sandpit.run(script, options=("--policy", "trace-only"))
    (started,) = sandpit.events("exec")
    assert started["path"].endswith("/true")
    assert started["at"].endswith("script.py:3")


# Writes into the shared memory that the thread is within a name lookup of libc's.
LOOKUP = r"""
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ring/ring.h"
int claim(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, offset;
    struct sp_ring *ring = NULL;
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:sandpit") != NULL &&
            sscanf(line, "%lx-%*x %*s %lx", &from, &offset) == 2 && offset == 0)
            ring = (struct sp_ring *)from;
    fclose(maps);
    if (ring == NULL)
        return -1;
    struct sp_ring_slot *slot = &ring->slots[SP_SLOTS - 1];
    slot->tid = (uint32_t)syscall(SYS_gettid);
    slot->act = SP_ACT_LOOKUP;
    slot->size = 0;
    slot->serial = 0x1000;
    return 0;
}
"""
TRY = r"""
import ctypes, socket, struct, sys
assert ctypes.CDLL(sys.argv[1]).claim() == 0
libc = ctypes.CDLL(None)
for i in range(3):
    fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = struct.pack("<HH4s8s", socket.AF_INET, socket.htons(4000),
                          socket.inet_aton(f"10.0.0.{i}"), b"")
    libc.connect(fd, address, 16)
libc.listen(fd, 1)
libc.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
"""


def test_a_claimed_lookup_hides_nothing_that_libc_would_not_do(sandpit, tmp_path):
    (tmp_path / "claim.c").write_text(LOOKUP)
    source = Path(__file__).parents[2] / "src"
    library = tmp_path / "claim.so"
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            f"-I{source}",
            "-o",
            library,
            tmp_path / "claim.c",
        ],
        check=True,
    )
    done = sandpit.run(TRY, library, options=("--policy", "no-network"))
    assert done.returncode == 0, done.stderr
    told = {(e["operation"], e["target"]) for e in sandpit.events("violation")}
    assert told == {
        ("connect", "10.0.0.0:4000"),
        ("connect", "10.0.0.1:4000"),
        ("connect", "10.0.0.2:4000"),
        ("listen", "a socket"),
        ("socket", "packet raw"),
    }


# One image after another at the same addresses.
SAME = r"""
#include <sys/personality.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    char next[2] = {(char)(argv[1][0] + 1), 0};
    char *arguments[] = {argv[0], next, NULL};
    personality(ADDR_NO_RANDOMIZE);
    if (next[0] < '5')
        execve(argv[0], arguments, environ);
    (void)argc;
    return 0;
}
"""


def test_programs_that_look_the_same_are_each_recorded(sandpit, build):
    program = build(SAME, "same")
    done = sandpit.run(START, program, "0", options=("--policy", "trace-only"))
    assert done.returncode == 0, done.stderr
    assert [e["argv"][1] for e in sandpit.events("exec")] == list("01234")
    assert sandpit.verify() == 0
