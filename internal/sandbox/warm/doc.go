// Package warm keeps Python ready before it is asked for.
//
// A Pool holds slots: each is something that one execution at a time can be
// given to, of one kind (project, mounts, environment), never shared with
// another kind. It follows demand, bounds their number, and replaces them by
// age and use. What a slot is, is the caller's: a fork server, or an
// interpreter that was started ahead and is used once.
//
// A Server is the worker's side of a fork server: a Python process that forks
// a child ahead of each request. The child confines itself, waits, takes the
// request and its descriptors from the socket by itself, and runs it; the
// server, which runs no code and reads no payload, kills what the child left
// behind and only then answers.
//
// # What a run cannot see of the one before
//
// Each child has its own address space, process namespace, mounts, /tmp,
// /dev/shm, System V IPC, session, descriptors, working directory, umask,
// signal mask and limits. Two runs of one server share the order of the
// address space, the hash seed, the network namespace (which has no
// interface) and the control group; this is why a slot is replaced after a
// number of runs and a time. At the levels without namespaces everything that
// the file system permits is shared, as between two cold starts.
//
// # Descriptors of the server
//
//	0  /dev/null
//	1  what the server has to complain of
//	2  the same
//	3  prologue, length (4 bytes), Settings as JSON
//	4  control, SOCK_SEQPACKET: "ready" from the first child that is; requests to
//	   the children, reports from the server
//	5  cancel, a pipe: the numbers of runs to end, 8 bytes each
//
// A request is its number (8 bytes), the size of the frame if it is in a file
// (8), else the frame itself; its descriptors are the output, the value and,
// if the frame is in a file, the file. All integers are little-endian. For
// the frame, the output and the value see package python.
package warm
