"""Every import statement of reviewed code is told, whoever else imported the module."""

from __future__ import annotations


def modules(outcome, **fields):
    return [one["module"] for one in outcome.of("import", **fields)]


def test_import_statement_tells_module_file_and_line(guest, script):
    outcome = guest("import sys\n\nimport colorsys\n")
    (told,) = outcome.of("import", module="colorsys")
    assert told["direct"] is True
    assert told["file"].endswith("/colorsys.py")
    assert (told["at"], told["at_line"]) == (script, 3)
    assert told["from"] == f"{script}:3"


def test_import_by_library_is_not_direct(guest, script, tmp_path):
    library = tmp_path / "lib"
    library.mkdir()
    (library / "helper.py").write_text("import colorsys\n")
    outcome = guest(
        "import sys; sys.path.insert(0, 'lib')\nimport helper\n", "-p", str(library)
    )
    assert outcome.of("import", module="helper", direct=True, at_line=2)
    (told,) = outcome.of("import", module="colorsys")
    assert told["direct"] is False
    assert told["from"].endswith("lib/helper.py:1")
    assert (told["at"], told["at_line"]) == (script, 2)


def test_cached_import_is_told_once_for_each_place(guest, script):
    code = (
        "import os\ndef f():\n    import colorsys\n    import os as o\n"
        "for _ in range(50):\n    f()\n"
    )
    outcome = guest(code)
    cached = outcome.of("import", module="os", cached=True)
    assert [one["at_line"] for one in cached] == [1, 4]
    assert all(one["direct"] for one in cached)
    assert modules(outcome, at=script, at_line=3).count("colorsys") == 1


def test_module_that_is_missing_is_told(guest):
    code = (
        "try:\n    import not_there\nexcept ImportError:\n    pass\nimport colorsys\n"
    )
    outcome = guest(code)
    (told,) = outcome.of("import", module="not_there")
    assert "file" not in told
    direct = modules(outcome, direct=True)
    assert direct.index("not_there") < direct.index("colorsys")


def test_package_and_submodule_are_told_with_their_files(guest):
    outcome = guest("import xml.dom.minidom\n")
    for module in ("xml", "xml.dom", "xml.dom.minidom"):
        (told,) = outcome.of("import", module=module)
        assert told["direct"] is True, module
        assert module.split(".")[-1] in told["file"]


def test_relative_import_is_told_by_its_full_name(guest, tmp_path):
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from . import first\nfrom .second import value\n"
    )
    (package / "first.py").write_text("import os\n")
    (package / "second.py").write_text("from . import first\nvalue = 1\n")
    outcome = guest("import parcel\n")
    assert {"parcel", "parcel.first", "parcel.second"} <= set(
        modules(outcome, direct=True)
    )
    assert all(
        one["direct"] for one in outcome.of("import") if "parcel" in one["module"]
    )


def test_importlib_functions_are_told_as_the_callers(guest, script):
    code = (
        "import importlib, runpy\n"
        "importlib.import_module('colorsys')\n"
        "import colorsys\n"
        "importlib.reload(colorsys)\n"
        "importlib.import_module('colorsys')\n"
        "runpy.run_module('this', run_name='x')\n"
    )
    outcome = guest(code)
    lines = [
        one["at_line"] for one in outcome.of("import", module="colorsys", direct=True)
    ]
    assert lines == [2, 3, 4, 5]
    assert outcome.of("import", module="this", direct=True, at_line=6)


def test_module_loaded_from_a_file_is_told(guest, tmp_path):
    (tmp_path / "plug.txt").write_text("x = 1\n")
    code = (
        "import importlib.util as u, importlib.machinery as m\n"
        "loader = m.SourceFileLoader('plug', 'plug.txt')\n"
        "spec = u.spec_from_loader('plug', loader)\n"
        "module = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
    )
    outcome = guest(code)
    (told,) = outcome.of("import", module="plug")
    assert told["direct"] is True
    assert told["at_line"] == 5


def test_module_in_a_zip_file_is_told(guest, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "parcel.zip", "w") as archive:
        archive.writestr("zipped.py", "import colorsys\n")
    code = "import sys\nsys.path.insert(0, 'parcel.zip')\nimport zipped\n"
    outcome = guest(code)
    (told,) = outcome.of("import", module="zipped")
    assert "parcel.zip" in told["file"]
    (inner,) = outcome.of("import", module="colorsys")
    assert inner["direct"] is True


def test_extension_module_is_told_as_native(guest):
    code = "import _testcapi\n"
    outcome = guest("import _json\n" if guest("import _json").of("native") else code)
    natives = outcome.of("native", op="import")
    if not natives:  # a build with everything compiled in
        return
    assert natives[0]["library"].endswith(".so")
    assert outcome.of("import", module=natives[0]["module"], native=True)


def test_text_of_the_program_imports_directly(guest, script):
    outcome = guest("exec('import colorsys')\n")
    (told,) = outcome.of("import", module="colorsys")
    assert told["direct"] is True


def test_named_package_is_reviewed_with_m(guest):
    outcome = guest(None, flags=("-m", "json.tool", "--help"))
    assert outcome.code == 0
    assert "argparse" in modules(outcome, direct=True)


def test_command_is_reviewed(guest):
    outcome = guest(None, flags=("-c", "import colorsys"))
    (told,) = outcome.of("import", module="colorsys")
    assert told["direct"] is True
    assert (told["at"], told["at_line"]) == ("<string>", 1)


def test_import_looks_as_it_always_did(guest):
    code = (
        "import builtins, inspect\n"
        "f = builtins.__import__\n"
        "print(f, f.__name__, f.__qualname__, f.__module__, f.__self__, type(f))\n"
        "print(f.__doc__)\n"
        "print(f.__text_signature__)\n"
        "for wrong in ((), (1,), ('os', 1, 2, 3, 4, 5)):\n"
        "    try:\n"
        "        f(*wrong)\n"
        "    except Exception as e:\n"
        "        print(type(e), e)\n"
        "try:\n"
        "    f(name='os', other=1)\n"
        "except Exception as e:\n"
        "    print(type(e), e)\n"
        "print(f(name='os.path', fromlist=['join']), f('os.path'))\n"
    )
    outcome = guest(code)
    import subprocess

    plain = subprocess.run(
        [outcome_python(guest), "-c", code], capture_output=True, text=True, check=True
    )
    assert outcome.stdout == plain.stdout


def outcome_python(guest):
    """Give the interpreter that `guest` runs."""
    return guest("import sys; print(sys.executable)").stdout.strip()


def test_imports_of_passing_texts_are_all_told(guest):
    """The next text lies where the last one lay, at the same place of the program."""
    names = ["os", "re", "sys", "types", "enum", "functools", "operator", "time"]
    code = (
        f"import {', '.join(names)}\nfor n in {names} * 3:\n    exec(f'import {{n}}')\n"
    )
    outcome = guest(code)
    assert sorted(modules(outcome, at_line=3, direct=True)) == sorted(names)


def test_program_under_the_interpreters_folders_is_reviewed(guest, tmp_path):
    (tmp_path / "inner").mkdir()
    program = tmp_path / "inner" / "main.py"
    program.write_text("import colorsys\n")
    outcome = guest(None, "-p", str(tmp_path / "inner"), args=(str(program),))
    (told,) = outcome.of("import", module="colorsys")
    assert told["direct"] is True
