"""Turn the built-in policies into C: one ready block each, no TOML at run time.

python3 compile.py OUT.c POLICY.toml...
"""

from __future__ import annotations

import hashlib
import pathlib
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = {"": {"description", "network"}, "network": {"deny", "clients"}}


class Texts:
    """The texts of one block, NUL-terminated, each once."""

    def __init__(self) -> None:
        self.data = ""
        self.offsets: dict[str, int] = {}

    def offset(self, text: str) -> str:
        if text not in self.offsets:
            self.offsets[text] = len(self.data.encode())
            self.data += text + "\0"
        return f"AT({self.offsets[text]})"


def quoted(text: str) -> str:
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\' or not 32 <= byte < 127:
            out.append(f"\\{byte:03o}")
        else:
            out.append(char)
    return "".join(out)


def line_of(lines: list[str], key: str, value: str) -> int:
    """The line on which `value` stands in the list of `key`."""
    start = next(i for i, line in enumerate(lines) if line.split("=")[0].strip() == key)
    for number in range(start, len(lines)):
        if f'"{value}"' in lines[number].split("#")[0]:
            return number + 1
    raise SystemExit(f"no line found for {key} {value!r}")


def block(path: pathlib.Path) -> tuple[str, str]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    policy = tomllib.loads(text)
    network = policy.get("network", {})
    for where, table in (("", policy), ("network", network)):
        unknown = set(table) - KNOWN[where]
        if unknown:
            raise SystemExit(f"{path}: unknown keys in [{where}]: {sorted(unknown)}")
    texts = Texts()
    rules = []
    for key in ("deny", "clients"):
        section = "SP_SECTION_IMPORTS" if key == "clients" else "SP_SECTION_NETWORK"
        for value in network.get(key, []):
            rules.append(
                f"{{{section}, SP_DENY, {line_of(lines, key, value)}, "
                f"{texts.offset(value)}, {texts.offset('network.' + key)}}}"
            )
    denied = "*" in network.get("deny", [])
    name = "block_" + path.stem.replace("-", "_")
    head = [
        ".size = sizeof(struct NAME)",
        f".rules_count = {len(rules)}",
        ".rules_offset = offsetof(struct NAME, rules)",
        f".name = {texts.offset(path.stem)}",
        f".source = {texts.offset(path.name)}",
        f".description = {texts.offset(policy['description'])}",
        ".digest = "
        + texts.offset(hashlib.blake2b(text.encode(), digest_size=32).hexdigest()),
        f".network_denied = {int(denied)}",
        f".expected = {int(not rules)}",
        f".network_line = {line_of(lines, 'deny', '*') if denied else 0}",
    ]
    size = len(texts.data.encode())
    body = f"""
#define AT(n) (offsetof(struct NAME, texts) + (n))
#define NAME {name}
static const struct NAME {{
    struct sp_policy head;
    struct sp_policy_rule rules[{max(len(rules), 1)}];
    char texts[{size + 1}];
}} the_{name} = {{
    {{
        {
        ''',
        '''.join(head)
    }
    }},
    {{
        {
        ''',
        '''.join(rules)
        or "{0}"
    }
    }},
    "{quoted(texts.data)}"
}};
#undef NAME
#undef AT
"""
    return name, body


def main() -> None:
    out = [
        "/* Made by policies/compile.py from the TOML files beside it. */",
        "#include <stddef.h>",
        '#include "policy/policy.h"',
    ]
    names = []
    for path in sys.argv[2:]:
        name, body = block(pathlib.Path(path))
        names.append(name)
        out.append(body)
    out.append("const struct sp_policy *sp_policy_builtin_at(size_t index)\n{")
    out.append("    static const struct sp_policy *const all[] = {")
    out += [f"        &the_{name}.head," for name in names]
    out.append(
        "    };\n    return index < sizeof all / sizeof *all ? all[index] : NULL;\n}"
    )
    pathlib.Path(sys.argv[1]).write_text("\n".join(out) + "\n", encoding="utf-8")


main()
