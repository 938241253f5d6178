"""Folders that a guest made hard to remove are removed all the same."""

from __future__ import annotations

import os
import subprocess
import sys

from sandpit._folder import remove_tree


def test_tree_of_any_depth_is_removed(tmp_path):
    top = tmp_path / "top"
    code = (
        "import os, sys\nos.makedirs(sys.argv[1])\nos.chdir(sys.argv[1])\n"
        "for i in range(3000):\n os.mkdir('deep'); os.chdir('deep')\n"
        "open('f', 'w').close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(top)], check=True)
    remove_tree(str(top))
    assert not top.exists()


def test_shut_folders_and_taken_names_are_removed(tmp_path):
    top = tmp_path / "top"
    (top / "shut" / "inner").mkdir(parents=True)
    (top / "shut" / "inner" / "f").write_text("x")
    (top / ".sandpit-moved-1" / "full").mkdir(parents=True)
    (top / ".sandpit-moved-2").write_text("x")
    (top / "shut" / "inner").chmod(0)
    (top / "shut").chmod(0)
    top.chmod(0)
    remove_tree(str(top))
    assert not top.exists()


def test_links_are_removed_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    (outside / "f").write_text("x")
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(outside)
    (top / "sub").mkdir()
    (top / "sub" / "link").symlink_to(outside)
    os.mkfifo(top / "pipe")
    remove_tree(str(top))
    assert not top.exists()
    (tmp_path / "replaced").symlink_to(outside)
    remove_tree(str(tmp_path / "replaced"))
    assert (outside / "f").exists()
    assert outside.stat().st_mode & 0o777 == 0o755


def test_nothing_there_is_no_error(tmp_path):
    remove_tree(str(tmp_path / "none"))
