# Runs one command, ends everything that it started, and says on stderr how it
# ended, after a secret that only the caller knows. Arguments: marker,
# directory, bytes of input, kind, four limits, then the command. On stdin
# come the secret, the environment, an empty line and the input; after that
# nothing, until the caller is gone.
IFS= read -r nonce || exit 1
marker=$1 dir=$2 size=$3 kind=$4 cpu=$5 file=$6 open=$7 data=$8
shift 8
say() { printf '\n%s %s\n' "$nonce" "$1" >&2; exit 0; }
while IFS= read -r variable && [ -n "$variable" ]; do export "$variable"; done
unset variable
cd "$dir" 2>/dev/null || say "why $dir: no such directory in the container"
found=
case $1 in
-*) ;;
*/*) [ -f "$1" ] && [ -x "$1" ] && found=yes ;;
*)
	fields=$IFS
	IFS=:
	for place in $PATH; do
		case $place in /*) [ -f "$place/$1" ] && [ -x "$place/$1" ] && found=yes ;; esac
	done
	IFS=$fields
	;;
esac
[ -n "$found" ] || say "why $1: command not found"
own=
command -v setsid >/dev/null 2>&1 && own=setsid
limits() {
	ulimit -c 0
	ulimit -t "$cpu"
	ulimit -f "$file"
	ulimit -n "$open"
	ulimit -d "$data"
} 2>/dev/null
start() {
	limits
	export TOOLWORKER_RUN="$marker"
	if [ "$kind" = python ]; then
		exec 3<&0 4>&2 2>&1 </dev/null
	fi
	exec $own "$@"
}
reap() {
	for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		left=
		for e in $(grep -ls "TOOLWORKER_RUN=$marker" /proc/[0-9]*/environ 2>/dev/null); do
			e=${e#/proc/}
			kill -9 "${e%/environ}" 2>/dev/null && left=yes
		done
		[ -n "$left" ] || return
	done
}
exec 5<&0
if [ "$size" -gt 0 ]; then
	head -c "$size" <&5 | (exec 5<&-; start "$@") &
else
	(exec 5<&- </dev/null; start "$@") &
fi
child=$!
# The caller sends nothing more: what ends this read is its death.
(while IFS= read -r rest <&5; do :; done; reap; kill -9 -"$child" "$child" 2>/dev/null) >/dev/null 2>&1 &
watch=$!
wait "$child"
code=$?
kill -9 "$watch" 2>/dev/null
kill -9 -"$child" 2>/dev/null
reap
say "exit $code"
