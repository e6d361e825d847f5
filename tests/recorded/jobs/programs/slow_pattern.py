"""Checks addresses with a pattern that tries all ways to split them."""

import re

PATTERN = re.compile(r"^(\w+\.?)+@\w+$")


def check_address(text: str) -> bool:
    return bool(PATTERN.match(text))


print("ready", flush=True)
while True:
    check_address("a" * 21 + "!")
