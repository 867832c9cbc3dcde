// Package seccomp writes the system call filter of a tool: an allow-list, as
// a program for the kernel's classic BPF machine, for amd64 and arm64.
//
// What the filter answers:
//
//   - a call of a foreign architecture (32-bit calls on a 64-bit kernel) ends
//     the process, for no number in it means what it says;
//   - a call that the kernel learned after this table was written, clone3 and
//     openat2, whose arguments no filter can see, and the x32 calls give
//     ENOSYS: programs know how to do without;
//   - sync, and setting the limit of core dumps, give success and do nothing;
//   - a call that this table knows and does not allow gives EPERM.
//
// The comparisons form a tree. The kernel runs a filter once per call number
// when it is installed, so a chain of some hundred comparisons would cost more
// than forking the process.
package seccomp
