"""What ordinary programs do works under the policies that are meant for them."""

from __future__ import annotations

import os
import subprocess
import textwrap
import zipfile

import pytest
import sandpit
from abilities import require
from plain import outcome_of, run_plain

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

PROGRAMS = {
    "database": """
        import sqlite3, threading
        base = sqlite3.connect("shop.db")
        print(base.execute("pragma journal_mode=wal").fetchone())
        base.execute("create table item(x)")
        def fill(factor):
            own = sqlite3.connect("shop.db", timeout=30)
            for n in range(10):
                own.execute("insert into item values(?)", (n * factor,))
                own.commit()
            own.close()
        threads = [threading.Thread(target=fill, args=(n,)) for n in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        print(base.execute("select count(*), sum(x) from item").fetchone())
        base.close()
        """,
    "archive": """
        import os, shutil, tarfile, tempfile, zipfile
        with zipfile.ZipFile("pack.zip", "w", zipfile.ZIP_DEFLATED) as pack:
            pack.writestr("a/b.txt", "text" * 100)
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile("pack.zip").extractall(folder)
            shutil.copytree(folder, "out")
        with tarfile.open("pack.tar.gz", "w:gz") as pack:
            pack.add("out")
        print(tarfile.open("pack.tar.gz").getnames())
        shutil.move("out/a/b.txt", os.path.join(tempfile.gettempdir(), "b.txt"))
        print(os.path.getsize(os.path.join(tempfile.gettempdir(), "b.txt")))
        shutil.rmtree("out")
        print(sorted(os.listdir(".")))
        """,
    "files": """
        import os, pathlib
        folder = pathlib.Path("one/two")
        folder.mkdir(parents=True)
        file = folder / "file"
        file.write_text("hello")
        file.chmod(0o600)
        os.truncate(file, 3)
        os.utime(file, (1, 1))
        os.link(file, "hard")
        os.symlink(file, "soft")
        os.replace("hard", "moved")
        print(file.read_text(), os.stat(file).st_mtime, os.stat(file).st_nlink)
        print(os.path.realpath("soft") == str(file.resolve()), os.path.exists("hard"))
        with open("grown", "a+b") as grown:
            grown.write(b"x" * 10000)
            grown.flush()
            os.fsync(grown.fileno())
            os.posix_fallocate(grown.fileno(), 0, 20000)
        print(os.stat("grown").st_size)
        """,
    "logging": """
        import logging, logging.handlers, os, pathlib, queue
        log = logging.getLogger("app")
        log.setLevel(logging.INFO)
        for path in ("app.log", pathlib.Path.home() / "app.log"):
            log.addHandler(logging.handlers.RotatingFileHandler(path, maxBytes=99,
                                                                backupCount=1))
        lines = queue.Queue()
        log.addHandler(logging.handlers.QueueHandler(lines))
        for n in range(5):
            log.info("line %d", n)
        print(lines.qsize(), sorted(os.listdir(".")))
        """,
    "processes": """
        import asyncio, concurrent.futures, multiprocessing, subprocess, sys
        from multiprocessing import shared_memory
        def square(n):
            return n * n
        async def child():
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print(5)", stdout=subprocess.PIPE)
            print(await process.communicate())
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(method, pool.map(square, range(4)))
            with concurrent.futures.ProcessPoolExecutor(2) as pool:
                print(list(pool.map(square, range(3))))
            asyncio.run(child())
            with multiprocessing.Manager() as manager:
                shared = manager.dict(one=1)
                print(dict(shared))
            memory = shared_memory.SharedMemory(create=True, size=100)
            memory.buf[0] = 7
            print(memory.buf[0])
            memory.close()
            memory.unlink()
        """,
    "habits": """
        import ctypes.util, platform, uuid, getpass, locale, mimetypes, zoneinfo, time
        print(ctypes.util.find_library("c"), ctypes.util.find_library("absent-one"))
        print(platform.platform(), platform.processor(), platform.architecture()[0])
        print(uuid.getnode() > 0, getpass.getuser(), locale.setlocale(locale.LC_ALL, ""))
        print(mimetypes.guess_type("a.html"), time.tzname)
        """,
}


def write(folder, text, name="main.py"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(textwrap.dedent(text))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_as_under_plain_python(python, name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("plain", "home", "confined"):
        (tmp_path / folder).mkdir()
    for folder in ("plain", "confined"):
        write(tmp_path / folder, PROGRAMS[name])
    plain = run_plain(python, ["main.py"], cwd=tmp_path / "plain")
    assert plain.exit_code == 0, plain.stderr.decode()
    result = sandpit.run(
        "main.py", cwd=tmp_path / "confined", policy="default", python=python.path
    )
    assert outcome_of(result) == plain
    assert result.violations == ()


# ---- bytecode ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [False, True], ids=["fresh", "folder-there"])
@pytest.mark.parametrize("policy", ["read-only", "default", "strict"])
def test_importing_a_local_package_is_no_violation(
    python, policy, made, tmp_path, monkeypatch
):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    write(tmp_path, "import package.part\nprint(package.part.VALUE)\n")
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "VALUE = 3\n", "package/part.py")
    cache = tmp_path / "package" / "__pycache__"
    if made:
        cache.mkdir()
    result = sandpit.run("main.py", cwd=tmp_path, policy=policy, python=python.path)
    assert (result.stdout, result.violations) == ("3\n", ())
    if policy == "default":
        assert len(os.listdir(cache)) == 2
    else:
        assert not cache.exists() or os.listdir(cache) == []


def test_a_folder_of_that_name_that_the_program_makes_is_one(tmp_path):
    write(tmp_path, "import os\nos.mkdir('__pycache__')\n")
    result = sandpit.run("main.py", cwd=tmp_path, policy="read-only")
    assert [one.operation for one in result.violations] == ["mkdir"]
    assert not (tmp_path / "__pycache__").exists()


# ---- what needs a grant -----------------------------------------------------------------

WEB = """
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/main.py"
print(len(urllib.request.urlopen(address).read()))
server.shutdown()
"""


def test_a_local_server_and_its_client_where_loopback_is_granted(python, tmp_path):
    write(tmp_path, WEB)
    granted = {"net": ["loopback"]}
    result = sandpit.run("main.py", cwd=tmp_path, allow=granted, python=python.path)
    assert (result.stdout, result.violations) == (f"{len(WEB)}\n", ()), result.stderr
    denied = sandpit.run("main.py", cwd=tmp_path, policy="default", python=python.path)
    assert denied.exit_code == 1
    assert denied.violations[0].category == "import"


GIT = """
import subprocess
def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    print(arguments[0], done.returncode, done.stdout)
git("status", "--short")
git("add", "new.txt")
git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "one")
git("ls-files")
"""


@pytest.mark.requires("git")
def test_git_where_it_is_granted(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path, GIT)
    (tmp_path / "new.txt").write_text("new\n")
    denied = sandpit.run("main.py", cwd=tmp_path, policy="default")
    assert denied.exit_code == 1
    assert denied.violations[0].operation == "exec"
    reading = sandpit.run(
        "main.py", cwd=tmp_path, policy="default", allow={"run": ["git"]}
    )
    assert "status 0 ?? main.py\n?? new.txt\n" in reading.stdout
    assert "add 128" in reading.stdout
    assert {one.category for one in reading.violations} == {"fs"}
    writing = sandpit.run(
        "main.py",
        cwd=tmp_path,
        policy="default",
        allow={"run": ["git"], "write": [str(tmp_path / ".git")]},
    )
    assert "ls-files 0 new.txt" in writing.stdout
    assert writing.violations == ()


def make_wheel(path):
    info = "tiny-1.0.dist-info"
    entries = {
        "tiny/__init__.py": "VALUE = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*entries, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**entries, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


def test_pip_installs_a_local_wheel_where_the_environment_is_granted(tmp_path):
    import interpreters

    own = interpreters.own()
    if not own.has("ensurepip"):
        require("pip", "this interpreter comes without pip")
    environment = tmp_path / "environment"
    subprocess.run([own.path, "-m", "venv", environment], check=True)
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    make_wheel(wheel)
    inside = environment / "bin" / "python"

    def install(**options):
        return sandpit.run(
            environment / "bin" / "pip",
            args=["install", "--no-index", str(wheel)],
            cwd=tmp_path,
            policy="default",
            python=inside,
            **options,
        )

    def value():
        code = "import tiny; print(tiny.VALUE)"
        return subprocess.run([inside, "-c", code], capture_output=True, check=False)

    denied = install()
    assert denied.exit_code != 0
    assert "is denied by policy 'default'" in denied.stderr
    assert value().returncode != 0
    granted = install(allow={"write": [str(environment)]})
    assert granted.exit_code == 0, granted.stderr
    assert granted.violations == ()
    assert value().stdout == b"42\n"


def test_variables_are_granted_by_name(monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    code = "import os; print('GITHUB_TOKEN' in os.environ, 'PYTHONPATH' in os.environ)"
    assert sandpit.run_string(code, policy="default").stdout == "False True\n"
    changed = sandpit.run_string(
        code,
        policy="default",
        allow={"env": ["GITHUB_TOKEN"]},
        deny={"env": ["PYTHONPATH"]},
    )
    assert changed.stdout == "True False\n"
