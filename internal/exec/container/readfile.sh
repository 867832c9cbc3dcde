# Writes a regular file to stdout and says on stderr how that went, after the
# secret that comes on stdin. Arguments: directory, path below it, most bytes.
IFS= read -r nonce || exit 1
say() { printf '\n%s %s\n' "$nonce" "$1" >&2; exit 0; }
cd "$1" 2>/dev/null || say "why $1: no such directory in the container"
at=.
IFS=/
set -f
for part in $2; do
	at=$at/$part
	[ -L "$at" ] && say "why symlinks are not followed"
done
[ -e "$at" ] || say "why no such file"
[ -f "$at" ] || say "why not a regular file"
[ "$(stat -c %h "$at" 2>/dev/null)" = 1 ] || say "why has more than one link"
[ "$(stat -c %s "$at" 2>/dev/null)" -le "$3" ] || say "why larger than $3 bytes"
cat "$at" 2>/dev/null && say "exit 0"
say "why cannot be read"
