"""Commits of a repository, for git fast-import: one large file that changes in each of them."""

import random

random.seed(1)
lines = [f"{random.random()} {random.random()}" for _ in range(3000)]
for number in range(400):
    lines[random.randrange(len(lines))] = f"{random.random()}"
    text = "\n".join(lines)
    print(f"blob\nmark :{number + 1}\ndata {len(text)}\n{text}")
for number in range(400):
    print("commit refs/heads/main\ncommitter Someone <someone@example.org> 1700000000 +0000\ndata 1\nx")
    print(f"M 100644 :{number + 1} numbers.txt")
