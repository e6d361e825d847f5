"""Demangling of Rust symbols: the legacy scheme (``_ZN…17h<hash>E``) and v0 (``_R…``, RFC 2603).

Hashes, crate disambiguators and the types of constants are left out. Input is hostile: depth, steps
and output are bounded; what does not parse is not demangled.
"""

from __future__ import annotations

import re

_LEGACY = re.compile(r"_{1,2}ZN(\d.*)17h[0-9a-f]{16}E(?:\.[\w.$@]+)?", re.DOTALL)
_PARTLY = re.compile(r"(?P<path>.+?)(?P<hash>::h[0-9a-f]{16})?(?:\.llvm\.\d+)?", re.DOTALL)
_ESCAPED = re.compile(r"\$(?:LT|RF|BP|u20|u7b)\$")
_V0 = re.compile(r"_{1,2}R([A-Z][A-Za-z0-9_]*)(?:\.[\w.$@]+)?")
_ESCAPE = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,6})\$|\.\.|\.")
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_BASIC_TYPES = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize", "j": "usize",
    "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_", "s": "i16", "t": "u16", "u": "()", "v": "...",
    "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip

_MAX_DEPTH = 128
_MAX_STEPS = 10_000
_MAX_OUTPUT = 8192


def demangle_rust(name: str) -> str | None:
    """The readable form of a Rust symbol, None when ``name`` is not one or is malformed."""
    if name.startswith(("_R", "__R")):
        match = _V0.fullmatch(name)
        return _demangle_v0(match[1]) if match else None
    match = _LEGACY.fullmatch(name)
    return _demangle_legacy(match[1]) if match else None


def finish_rust(name: str) -> str | None:
    """The readable form of a legacy symbol that was demangled as C++, as old versions of perf do: it has the path,
    its hash and its escapes (``_$LT$u8$u20$as$u20$core..clone..Clone$GT$::clone::h7bfab8630dda96cf``). Else None.
    """
    match = _PARTLY.fullmatch(name)
    if match is None or not (match["hash"] or _ESCAPED.search(name)):
        return None
    return "::".join(_unescape(part) if "$" in part else part for part in match["path"].split("::"))


def _demangle_legacy(parts: str) -> str | None:
    names = []
    at = 0
    while at < len(parts):
        length = re.compile(r"[1-9]\d{0,4}").match(parts, at)
        if length is None:
            return None
        at = length.end() + int(length[0])
        if at > len(parts):
            return None
        names.append(_unescape(parts[length.end() : at]))
    return "::".join(names) if names else None


def _unescape(part: str) -> str:
    # A leading underscore is only there to keep the part from beginning with an escape.
    if part.startswith("_$"):
        part = part[1:]

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code is None:
            return "::" if match[0] == ".." else "."
        if code in _ESCAPES:
            return _ESCAPES[code]
        number = int(code[1:], 16)
        return chr(number) if number <= 0x10FFFF and not 0xD800 <= number < 0xE000 else match[0]

    return _ESCAPE.sub(plain, part)


class _Malformed(Exception):
    pass


def _demangle_v0(text: str) -> str | None:
    parser = _V0Parser(text)
    try:
        return parser.path(True)
    except (_Malformed, UnicodeError):
        return None


class _V0Parser:
    """Recursive descent over the grammar of RFC 2603; each method returns the text of what it consumed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._steps = 0
        self._written = 0
        self._lifetimes = 0

    def path(self, in_value: bool) -> str:
        self._enter()
        tag = self._next()
        if tag == "C":
            self._disambiguator()
            text = self._identifier()
        elif tag == "N":
            text = self._nested(in_value)
        elif tag in "MX":
            self._disambiguator()
            self.path(False)  # the path of the impl
            text = f"<{self._type()}>" if tag == "M" else f"<{self._type()} as {self.path(False)}>"
        elif tag == "Y":
            text = f"<{self._type()} as {self.path(False)}>"
        elif tag == "I":
            text = self.path(in_value) + ("::<" if in_value else "<")
            text += ", ".join(self._until_end(self._generic_argument)) + ">"
        elif tag == "B":
            text = self._back_reference(lambda: self.path(in_value))
        else:
            raise _Malformed
        return self._leave(text)

    def _nested(self, in_value: bool) -> str:
        namespace = self._next()
        parent = self.path(in_value)
        number = self._disambiguator()
        name = self._identifier()
        if namespace.isupper():
            kind = {"C": "closure", "S": "shim"}.get(namespace, namespace)
            return f"{parent}::{{{kind}{':' if name else ''}{name}#{number}}}"
        return f"{parent}::{name}" if name else parent

    def _generic_argument(self) -> str:
        if self._take("L"):
            return self._lifetime(self._base62())
        return self._constant() if self._take("K") else self._type()

    def _type(self) -> str:
        self._enter()
        tag = self._next()
        if tag in _BASIC_TYPES:
            text = _BASIC_TYPES[tag]
        elif tag in "AS":
            inner = self._type()
            text = f"[{inner}; {self._constant()}]" if tag == "A" else f"[{inner}]"
        elif tag == "T":
            items = self._until_end(self._type)
            text = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        elif tag in "RQ":
            lifetime = self._base62() if self._take("L") else 0
            named = f"{self._lifetime(lifetime)} " if lifetime else ""
            text = f"&{named}{'mut ' if tag == 'Q' else ''}{self._type()}"
        elif tag in "PO":
            text = f"*{'const' if tag == 'P' else 'mut'} {self._type()}"
        elif tag == "F":
            text = self._bound(self._function)
        elif tag == "D":
            text = "dyn " + self._bound(lambda: " + ".join(self._until_end(self._dyn_trait)))
            if not self._take("L"):
                raise _Malformed
            lifetime = self._base62()
            text += f" + {self._lifetime(lifetime)}" if lifetime else ""
        elif tag == "B":
            text = self._back_reference(self._type)
        else:
            self._at -= 1
            text = self.path(False)
        return self._leave(text)

    def _function(self) -> str:
        unsafe = "unsafe " if self._take("U") else ""
        abi = ""
        if self._take("K"):
            abi = "C" if self._take("C") else self._identifier().replace("_", "-")
            abi = f'extern "{abi}" '
        arguments = ", ".join(self._until_end(self._type))
        result = self._type()
        return f"{unsafe}{abi}fn({arguments})" + (f" -> {result}" if result != "()" else "")

    def _dyn_trait(self) -> str:
        text = self.path(False)
        bindings = []
        while self._take("p"):
            name = self._identifier()
            bindings.append(f"{name} = {self._type()}")
        if not bindings:
            return text
        return f"{text[:-1]}, {', '.join(bindings)}>" if text.endswith(">") else f"{text}<{', '.join(bindings)}>"

    def _constant(self) -> str:
        self._enter()
        tag = self._next()
        if tag == "B":
            text = self._back_reference(self._constant)
        elif tag == "p":
            text = "_"
        elif tag in "abchijlmnostxy":
            negative = self._take("n")
            text = self._literal(tag, self._hex(), negative)
        else:
            raise _Malformed
        return self._leave(text)

    def _literal(self, tag: str, digits: str, negative: bool) -> str:
        number = int(digits or "0", 16)
        if tag == "b":
            return {0: "false", 1: "true"}.get(number) or self._fail()
        if tag == "c":
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise _Malformed
            return repr(chr(number))
        text = str(number) if len(digits) <= 16 else f"0x{digits}"
        return f"-{text}" if negative else text

    def _bound(self, inner: object) -> str:
        """The text after an optional ``for<'a>``."""
        count = self._base62() + 1 if self._take("G") else 0
        if count > 26:
            raise _Malformed
        names = ", ".join(self._name_lifetime(self._lifetimes + i) for i in range(count))
        self._lifetimes += count
        assert callable(inner)
        text = str(inner())
        self._lifetimes -= count
        return f"for<{names}> {text}" if count else text

    def _lifetime(self, index: int) -> str:
        if index == 0:
            return "'_"
        if index > self._lifetimes:
            raise _Malformed
        return self._name_lifetime(self._lifetimes - index)

    @staticmethod
    def _name_lifetime(depth: int) -> str:
        return f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}"

    def _back_reference(self, inner: object) -> str:
        here = self._at - 1
        target = self._base62()
        if target >= here:
            raise _Malformed
        back, self._at = self._at, target
        assert callable(inner)
        text = str(inner())
        self._at = back
        return text

    def _until_end(self, item: object) -> list[str]:
        assert callable(item)
        items = []
        while not self._take("E"):
            items.append(str(item()))
        return items

    def _identifier(self) -> str:
        if self._text.startswith("s", self._at):
            self._disambiguator()
        punycode = self._take("u")
        length = self._decimal()
        self._take("_")
        text = self._text[self._at : self._at + length]
        if len(text) != length:
            raise _Malformed
        self._at += length
        if punycode:
            prefix, _, rest = text.rpartition("_")
            text = f"{prefix}-{rest}".lstrip("-").encode("ascii").decode("punycode")
        return text

    def _disambiguator(self) -> int:
        return self._base62() + 1 if self._take("s") else 0

    def _decimal(self) -> int:
        start = self._at
        while self._at < len(self._text) and self._text[self._at].isdigit():
            self._at += 1
            if self._text[start] == "0":
                break
        if not 0 < self._at - start <= 6:
            raise _Malformed
        return int(self._text[start : self._at])

    def _base62(self) -> int:
        if self._take("_"):
            return 0
        number = 0
        while not self._take("_"):
            char = self._next()
            base = "0" if char.isdigit() else "a" if char.islower() else "A"
            number = number * 62 + ord(char) - ord(base) + {"0": 0, "a": 10, "A": 36}[base]
            if number >= 1 << 64:
                raise _Malformed
        return number + 1

    def _hex(self) -> str:
        end = self._text.find("_", self._at)
        digits = self._text[self._at : end]
        if end < 0 or len(digits) > 32 or digits.strip("0123456789abcdef"):
            raise _Malformed
        self._at = end + 1
        return digits

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _Malformed
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, char: str) -> bool:
        if self._text.startswith(char, self._at):
            self._at += 1
            return True
        return False

    def _enter(self) -> None:
        self._depth += 1
        self._steps += 1
        if self._depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            raise _Malformed

    def _leave(self, text: str) -> str:
        self._depth -= 1
        if len(text) > _MAX_OUTPUT:
            raise _Malformed
        return text

    @staticmethod
    def _fail() -> str:
        raise _Malformed
