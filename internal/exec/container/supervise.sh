# Runs one command, ends everything that it started, and says on stderr how it
# ended, after a secret that only the caller knows. Arguments: marker,
# directory, bytes of input, kind, seconds, processes, four limits, then the
# command. On stdin come the secret, the environment, an empty line and the
# input.
IFS= read -r nonce || exit 1
marker=$1 dir=$2 size=$3 kind=$4 seconds=$5 pids=$6 cpu=$7 file=$8 open=$9
shift 9
data=$1
shift
exec 6>&2 2>/dev/null
say() { printf '\n%s %s\n' "$nonce" "$1" >&6; }
variables=
while IFS= read -r variable && [ -n "$variable" ]; do
	variables="$variables$variable
"
	case $variable in PATH=*) PATH=${variable#PATH=} ;; esac
done
cd "$dir" || { say "why $dir: no such directory in the container"; exit 0; }
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
[ -n "$found" ] || { say "why $1: command not found"; exit 0; }
own=
command -v setsid >/dev/null && own=setsid
# Values come with \n and \\ for line breaks and backslashes.
prepare() {
	IFS='
'
	set -f
	for variable in $variables; do
		value=$(printf '%b_' "${variable#*=}")
		export "${variable%%=*}=${value%_}"
	done
	export TOOLWORKER_RUN="$marker"
	ulimit -c 0
	ulimit -t "$cpu"
	ulimit -f "$file"
	ulimit -n "$open"
	ulimit -d "$data"
}
start() {
	prepare
	if [ "$kind" = python ]; then
		exec 3<&0 4>&6 2>&1 </dev/null 6>&-
	else
		exec 2>&6 6>&-
	fi
	exec $own "$@"
}
all() { grep -ls "TOOLWORKER_RUN=$marker" /proc/[0-9]*/environ; }
reap() {
	kill -9 -"$child"
	round=0
	while [ "$round" -lt 100 ]; do
		found=$(all)
		[ -n "$found" ] || return 0
		for e in $found; do
			e=${e#/proc/}
			kill -9 "${e%/environ}"
		done
		round=$((round + 1))
	done
}
# Ends the command when its time is up, should the caller not live to do so,
# and when it has too many processes.
watch() {
	nap=
	trap 'kill -9 $nap; exit 0' TERM
	left=$((seconds * 5))
	while [ "$left" -gt 0 ]; do
		sleep 0.2 &
		nap=$!
		wait "$nap"
		set -- $(all)
		if [ $# -gt "$pids" ]; then
			say "pids $#"
			left=0
		fi
		left=$((left - 1))
	done
	reap
}
# A background command would lose its stdin.
exec 5<&0 </dev/null
if [ "$size" -gt 0 ]; then
	head -c "$size" <&5 | (exec 5<&-; start "$@") &
else
	(exec 5<&-; start "$@") &
fi
child=$!
(watch) >/dev/null 5<&- &
watch=$!
wait "$child"
code=$?
kill "$watch"
reap
wait "$watch"
say "exit $code"
times >&6
