"""Find lines by a regular expression.

Input: {"expression": str, "pattern": str, "limit": int}.
"""

import json
import os
import pathlib
import re
import sys

LARGEST = 8 * 1024 * 1024  # files beyond it are left out, in bytes
LONGEST = 500  # of a line that is shown, in characters


def texts(pattern):
    """Text files below the working directory; links are not followed."""
    wanted = pathlib.PurePath(pattern)
    if wanted.is_absolute() or ".." in wanted.parts:
        sys.exit(f"{pattern}: expected a pattern below the project's root")
    for path in sorted(pathlib.Path(".").glob(pattern)):
        if not path.is_file() or path.is_symlink() or ".git" in path.parts:
            continue
        try:
            if os.stat(path).st_size > LARGEST:
                continue
            data = path.read_bytes()
        except OSError:
            continue  # not ours to read
        if b"\0" not in data:
            yield path, data.decode("utf-8", errors="replace")


def main():
    given = json.load(sys.stdin)
    limit = given.get("limit", 100)
    try:
        expression = re.compile(given["expression"])
    except re.error as error:
        sys.exit(f"expression: {error}")
    matches, more = [], False
    for path, text in texts(given.get("pattern", "**/*")):
        for number, line in enumerate(text.splitlines(), start=1):
            if not expression.search(line):
                continue
            if len(matches) == limit:
                more = True
                break
            matches.append({"path": str(path), "line": number, "text": line[:LONGEST]})
        if more:
            break
    json.dump({"matches": matches, "more": more}, sys.stdout)


main()
