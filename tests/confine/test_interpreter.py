"""However the interpreter is named, it is the same one, with the same environment: where only
`{python}` may be read, it starts and finds its packages as it does unconfined."""

from __future__ import annotations

import os
import subprocess

import pytest
from programs import PROGRAM

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

SCRIPT = """\
import sys
try:
    open(sys.argv[1]).close()
    print("read")
except OSError:
    print("unread")
import installed
print(sys.prefix, installed.NAME)
"""
# From the folder that holds `env`, and `here` in which the run is.
NAMES = {
    "plain": "{top}/env/bin/python",
    "relative": "../env/bin/python",
    "dots": ".././env/../env/bin/python",
    "slashes": "..//env/./bin//python",
    "folder-link": "{top}/folder/bin/python",
    "link": "./link",
    "link-to-link": "./links/second",
}


@pytest.fixture
def top(python, tmp_path):
    """An environment with a package, and links to it."""
    subprocess.run(
        [python.path, "-m", "venv", "--without-pip", tmp_path / "env"], check=True
    )
    (packages,) = (tmp_path / "env/lib").glob("python*/site-packages")
    (packages / "installed.py").write_text("NAME = 'installed'\n")
    (tmp_path / "folder").symlink_to("env")
    (tmp_path / "here/links").mkdir(parents=True)
    (tmp_path / "here/link").symlink_to("../env/bin/python")
    (tmp_path / "here/links/second").symlink_to("../link")
    (tmp_path / "here/script.py").write_text(SCRIPT)
    (tmp_path / "secret").write_text("secret")
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_interpreter_starts_by_any_name(top, name):
    policy = top / "policy.toml"
    policy.write_text(f'[fs]\nallow_read = ["{{python}}", "{top}/here/script.py"]\n')
    asked = NAMES[name].format(top=top)
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}

    def run(*command):
        return subprocess.run(
            [*command, "script.py", top / "secret"], cwd=top / "here", check=False,
            env=environment, capture_output=True, text=True,
        )  # fmt: skip

    plain = run(asked)
    # Through links, not every version finds the environment.
    assert plain.stdout.startswith("read\n"), plain.stderr
    assert plain.returncode == 0 or "link" in name
    confined = run(
        PROGRAM, "run", "--quiet", "-o", top / "t.sptrace", "--policy", policy,
        "--python", asked,
    )  # fmt: skip
    assert confined.stdout == plain.stdout.replace("read", "unread", 1), confined.stderr
    assert confined.returncode == plain.returncode
