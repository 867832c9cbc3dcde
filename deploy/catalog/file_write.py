"""Create or replace a text file. Input: {"path": str, "text": str}."""

import contextlib
import json
import os
import sys
import tempfile


def write(path, data):
    directory = os.path.dirname(path) or "."
    os.makedirs(directory, exist_ok=True)
    # Whoever reads the file meanwhile sees the old one or the new one.
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".write-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def main():
    given = json.load(sys.stdin)
    data = given["text"].encode("utf-8", errors="replace")
    try:
        write(given["path"], data)
    except OSError as error:
        sys.exit(f"{given['path']}: {error.strerror}")
    json.dump({"path": given["path"], "size_bytes": len(data)}, sys.stdout)


main()
