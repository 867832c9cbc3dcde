"""List files by a glob pattern. Input: {"pattern": str, "limit": int}."""

import json
import os
import pathlib
import sys


def matching(pattern):
    """Regular files below the working directory; links are not followed."""
    wanted = pathlib.PurePath(pattern)
    if wanted.is_absolute() or ".." in wanted.parts:
        sys.exit(f"{pattern}: expected a pattern below the project's root")
    for path in sorted(pathlib.Path(".").glob(pattern)):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            yield path


def main():
    given = json.load(sys.stdin)
    limit = given.get("limit", 1000)
    files, more = [], False
    for path in matching(given.get("pattern", "**/*")):
        if len(files) == limit:
            more = True
            break
        files.append({"path": str(path), "size_bytes": os.stat(path).st_size})
    json.dump({"files": files, "more": more}, sys.stdout)


main()
