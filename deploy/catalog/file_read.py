"""Read a text file, or its first lines. Input: {"path": str, "count": int}."""

import json
import sys

MOST = 4 * 1024 * 1024  # characters


def read(path, count):
    lines, length, more = [], 0, False
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        while count is None or len(lines) < count:
            line = file.readline(MOST - length + 1)
            if not line:
                break
            if length + len(line) > MOST:
                lines.append(line[: MOST - length])
                return lines, True
            lines.append(line)
            length += len(line)
        else:
            more = bool(file.read(1))
    return lines, more


def main():
    given = json.load(sys.stdin)
    try:
        lines, more = read(given["path"], given.get("count"))
    except OSError as error:
        sys.exit(f"{given['path']}: {error.strerror}")
    json.dump({"text": "".join(lines), "lines": len(lines), "more": more}, sys.stdout)


main()
