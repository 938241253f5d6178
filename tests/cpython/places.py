"""Where the modules run: an interpreter with CPython's tests, a user without rights, fresh folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import outcomes

NOBODY = 65534
# Under trace-only a run may take this many times as long, and some seconds more.
PATIENCE = 3
PATIENCE_S = 60
_UNSHARED = "SANDPIT_CPYTHON_UNSHARED"


@dataclass(frozen=True)
class Place:
    """An interpreter and the user that it is started as."""

    python: str
    version: str
    program: str
    who: dict[str, Any]

    def modules(self) -> list[str]:
        """Name every test module, as `python -m test` does."""
        with self.folder() as folder:
            done = subprocess.run(
                [self.python, "-m", "test", "--list-tests"],
                cwd=folder,
                env=_environment(folder),
                capture_output=True,
                text=True,
                check=True,
                **self.who,
            )
        return [name for name in done.stdout.split() if name.startswith("test_")]

    @contextlib.contextmanager
    def folder(self):
        """A fresh folder of that user's, removed with whatever a test left in it."""
        path = Path(tempfile.mkdtemp(prefix="cpython-"))
        try:
            if self.who:
                os.chown(path, self.who["user"], self.who["group"])
            yield path
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", path], stderr=subprocess.DEVNULL)
            shutil.rmtree(path, ignore_errors=True)

    def run(
        self,
        module: str,
        kept: Path,
        *,
        confined: bool,
        limit_s: float,
        selected: list[str],
    ) -> outcomes.Outcomes:
        """Run one module; its report, output and trace are kept in `kept`."""
        kept.mkdir(parents=True, exist_ok=True)
        with self.folder() as folder:
            report = folder / "report.xml"
            words = ["-m", "test", "--junit-xml", str(report), *selected, module]
            command = [self.python, *words]
            if confined:
                trace = str(folder / "run.sptrace")
                options = ["--policy", "trace-only", "--quiet", "-o", trace]
                options += ["--python", self.python]
                command = [self.program, "run", *options, *words]
            begin = time.monotonic()
            with open(kept / "output.txt", "wb") as output:
                ending = self._wait(command, folder, output, limit_s)
            took_s = time.monotonic() - begin
            for name in ("report.xml", "run.sptrace"):
                with contextlib.suppress(OSError):
                    shutil.copyfile(folder / name, kept / name)
        return outcomes.read(module, kept / "report.xml", ending, took_s)

    def _wait(
        self, command: list[str], folder: Path, output: Any, limit_s: float
    ) -> str:
        """Run a command to its end, or to the limit; what it leaves is ended as well."""
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **self.who,
        )
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # sandpit, as shells do, gives 128 + N for a program that signal N ended.
        code = code - 128 if 128 < code < 160 else -code if code < 0 else code + 1000
        return f"exit code {code - 1000}" if code >= 1000 else f"signal {code}"


def _environment(folder: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "LC_ALL", "SANDPIT_AGENTS")
    }
    # The temporary folder is apart from the current one, as it is for most people.
    temporary = folder / "tmp"
    if not temporary.exists():
        temporary.mkdir()
        with contextlib.suppress(PermissionError):
            os.chown(temporary, folder.stat().st_uid, folder.stat().st_gid)
    return {**kept, "HOME": str(folder), "TMPDIR": str(temporary)}


def find(python: str, program: str, *, ordinary: bool = True) -> Place:
    """Make a place of an interpreter; as an ordinary user where that can be had.

    Without rights is how nearly everybody runs Python, and root in sandpit has no
    capabilities, which plain root has.
    """
    version = _ask(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    if os.geteuid() != 0 or not ordinary:
        return Place(python, version, program, {})
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if not _starts(program, "--version", who):
        print(f"running as root: another user cannot start {program}", flush=True)
        return Place(python, version, program, {})
    if not _starts(python, "-c", who):
        python = _show(python)
        if not _starts(python, "-c", who):
            print(f"running as root: another user cannot start {python}", flush=True)
            return Place(python, version, program, {})
    return Place(python, version, program, who)


def _ask(python: str, code: str) -> str:
    done = subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _starts(command: str, option: str, who: dict[str, Any]) -> bool:
    words = [command, option] + (["pass"] if option == "-c" else [])
    try:
        return (
            subprocess.run(words, cwd="/", capture_output=True, **who).returncode == 0
        )
    except PermissionError:
        return False


def _show(python: str) -> str:
    """Let every user reach an interpreter in a closed folder, such as one's home.

    In a mount namespace of this program's own, where an empty folder takes the place of
    the closed one and holds nothing but the interpreter, under its own path: libraries
    and scripts of an installation name that.
    """
    if _UNSHARED not in os.environ:
        os.environ[_UNSHARED] = "1"
        if _runs("unshare", "--mount", "true"):
            command = ["unshare", "--mount", sys.executable, *sys.argv]
            sys.stdout.flush()
            os.execvp(command[0], command)
    real = os.path.realpath(python)
    closed = _closed_above(Path(real))
    if os.environ[_UNSHARED] != "1" or closed is None:
        return python
    prefixes = {os.path.realpath(sys.base_prefix)}
    prefixes.add(os.path.realpath(_ask(python, "import sys; print(sys.base_prefix)")))
    inside = [one for one in sorted(prefixes) if Path(closed) in Path(one).parents]
    with tempfile.TemporaryDirectory(prefix="sandpit-cpython-") as stage:
        held = [(one, os.path.join(stage, str(i))) for i, one in enumerate(inside)]
        for one, place in held:
            os.mkdir(place)
            subprocess.run(["mount", "--bind", one, place], check=True)
        empty = ["-t", "tmpfs", "-o", "mode=755", "none", str(closed)]
        subprocess.run(["mount", *empty], check=True)
        for one, place in held:
            os.makedirs(one)
            subprocess.run(["mount", "--move", place, one], check=True)
    return real


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def _closed_above(path: Path) -> Path | None:
    """The outermost folder above that others may not enter."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None
