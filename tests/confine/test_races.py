"""A second thread changes what a pointer argument says while the call is judged: nothing that
is denied gets through, and what is granted goes on working."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

pytestmark = [
    pytest.mark.requires("program"), pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"), pytest.mark.requires("cc")]

CONNECT = r"""
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
static struct sockaddr_un volatile_address = {.sun_family = AF_UNIX};
static const char *names[2];
static volatile int done;
static void *flip(void *u)
{
    volatile char *last = volatile_address.sun_path + strlen(names[0]) - 1;
    for (unsigned i = 0; !done; i++) /* the names differ in their last letter */
        *last = names[i & 1][strlen(names[0]) - 1];
    return u;
}
static void *serve(void *u)
{
    int s = *(int *)u;
    for (;;) {
        int c = accept(s, NULL, NULL);
        if (c >= 0)
            close(c);
    }
    return u;
}
int main(int argc, char **argv)
{
    int tries = atoi(argv[3]), own = socket(AF_UNIX, SOCK_STREAM, 0), granted = 0;
    struct sockaddr_un mine = {.sun_family = AF_UNIX};
    names[0] = argv[1];  /* ours */
    names[1] = argv[2];  /* somebody else's */
    strcpy(mine.sun_path, names[0]);
    strcpy(volatile_address.sun_path, names[0]);
    if (bind(own, (void *)&mine, sizeof mine) || listen(own, 128))
        return 1;
    pthread_t t, v;
    pthread_create(&v, NULL, serve, &own);
    pthread_create(&t, NULL, flip, NULL);
    /* On a busy machine the other thread may not get to run for long. */
    for (int i = 0; i < tries || (granted == 0 && i < tries * 20); i++) {
        sched_yield();
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        granted += connect(s, (void *)&volatile_address, sizeof volatile_address) == 0;
        close(s);
    }
    done = 1;
    printf("%d\n", granted);
    (void)argc;
    return 0;
}
"""

OPEN = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
static char path[256];
static const char *names[2];
static volatile int done;
static void *flip(void *u)
{
    for (unsigned i = 0; !done; i++)
        memcpy(path, names[i & 1], 60);
    return u;
}
int main(int argc, char **argv)
{
    int tries = atoi(argv[3]), inside = 0, outside = 0;
    static char a[256], b[256];
    strcpy(a, argv[1]);
    strcpy(b, argv[2]);
    names[0] = a;
    names[1] = b;
    strcpy(path, a);
    pthread_t t;
    pthread_create(&t, NULL, flip, NULL);
    /* On a busy machine the other thread may not get to run for long. */
    for (int i = 0; i < tries || ((inside == 0 || outside == 0) && i < tries * 20); i++) {
        sched_yield();
        int fd = open(path, O_WRONLY);
        struct statfs fs;
        if (fd < 0)
            continue;
        fstatfs(fd, &fs);
        if (fs.f_type == 0x9fa0)
            outside++;
        else
            inside++;
        close(fd);
    }
    done = 1;
    printf("%d %d\n", inside, outside);
    (void)argc;
    return 0;
}
"""

START = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"


@pytest.fixture
def build(tmp_path):
    def compile_(source, name):
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-O2", "-pthread", "-o", tmp_path / name, tmp_path / f"{name}.c"],
                       check=True)
        return tmp_path / name
    return compile_


class Server:
    """A Unix socket outside the run that counts who comes."""

    def __init__(self, path):
        self.reached = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                one, _ = self._socket.accept()
            except OSError:
                return
            self.reached += 1
            one.close()


def test_racing_connects_reach_no_socket_outside(sandpit, build, tmp_path):
    program = build(CONNECT, "race")
    server = Server(tmp_path / "sock-b")
    plain = sandpit.plain(START, program, tmp_path / "sock-a", tmp_path / "sock-b", 3000)
    assert plain.returncode == 0 and server.reached > 0
    os.unlink(tmp_path / "sock-a")
    before = server.reached
    done = sandpit.run(START, program, tmp_path / "sock-a", tmp_path / "sock-b", 3000,
                       options=("--policy", "no-network"))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0  # its own it reached
    assert server.reached == before
    assert any(e["target"].endswith("sock-b") for e in sandpit.events("violation"))
    assert sandpit.verify() == 0


@pytest.mark.parametrize("abi", [None, 1, 2])
def test_racing_opens_reach_no_other_process(sandpit, build, tmp_path, abi):
    program = build(OPEN, "race")
    inside = tmp_path / "inside.txt"
    inside.write_text("")
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        outside = f"/proc/{victim.pid}/oom_score_adj"
        plain = sandpit.plain(START, program, inside, outside, 2000)
        assert int(plain.stdout.split()[1]) > 0
        env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
        done = sandpit.run(START, program, inside, outside, 2000, env=env,
                           options=("--policy", "trace-only"))
    finally:
        victim.kill()
        victim.wait()
    assert done.returncode == 0, done.stderr
    granted, escaped = map(int, done.stdout.split())
    assert granted > 0 and escaped == 0
    assert sandpit.verify() == 0
