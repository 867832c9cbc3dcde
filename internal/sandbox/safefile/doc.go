// Package safefile touches files below a directory in which somebody hostile
// works at the same time.
//
// A path is never checked and then opened: it is opened from a descriptor of
// the root by openat2, which refuses symlinks, mounts and whatever leaves the
// root on its way, and what was opened is then examined through its own
// descriptor. Where the kernel or an outer seccomp filter has no openat2, the
// path is walked one component at a time with O_NOFOLLOW, to the same end.
//
// Names are relative to the root and slash-separated, without "." and "..";
// Relative makes one of a host path. Only Resolve follows symlinks, for
// guards that must know where a path of somebody else's would lead.
package safefile
