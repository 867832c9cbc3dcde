// Package sandbox is how a process is confined and supervised, on the host
// and inside containers, and how files below a root are touched safely.
//
// # What is protected from whom
//
// The code of a tool is hostile: somebody persuaded a language model to write
// it. The host, the worker, other tools and other projects are protected from
// it; so are parts of its own project (Protect), and all of it unless the tool
// may write. The worker's configuration and catalogue are trusted, and whoever
// may change files of a project from outside is.
//
//	threat                             full                            reduced
//	reads files of the host            mount: only system, project     landlock
//	writes files of the host           mount, landlock                 landlock
//	chmod, chown, utime elsewhere      mount                           seccomp: not at all
//	reads other processes              pid, proc                       landlock, seccomp (ptrace)
//	signals other processes            pid, landlock_scopes            landlock_scopes; setuid
//	ends or deceives its supervisor    seccomp, landlock_scopes        landlock_scopes; setuid
//	network                            net: none there                 seccomp: no sockets
//	engine's and others' sockets       mount, net, landlock_scopes     seccomp: no sockets with a path
//	shared memory, queues of others    ipc                             seccomp
//	attacks on the kernel              seccomp, capabilities           seccomp, capabilities
//	gains rights by setuid programs    no_new_privs, mount (nosuid)    no_new_privs
//	leaves setuid programs behind      seccomp                         seccomp
//	survives its answer                pid: dies with its init         supervisor: subreaper
//	survives the worker                parent-death signal             supervisor: control socket
//	memory, processes, cpu             control groups, else supervisor and resource limits
//	files, descriptors, core dumps     resource limits
//	temporary files                    own sized /tmp and /dev/shm     own directory (TMPDIR), unsized
//	the worker's descriptors, secrets  close-on-exec, environment from the Spec only
//
// Level none is a process group with limits and a supervisor that ends what
// it finds. It protects nothing from hostile code: a tool may kill its
// supervisor, and what it left in other sessions then lives on where no
// control group holds it.
//
// Mechanisms have the names of the table in [tool.SandboxMetadata]; what a run
// did without is in Missing. [Probe] tries every one of them and says what to
// do about what does not work.
//
// # What is not protected
//
//   - With Network the host's network is shared: services on loopback
//     addresses can be reached, and Missing has net.
//   - Side channels, and time.
//   - Disk space below a writable project: file sizes are bounded, their sum
//     is not.
//   - At level reduced, names, sizes and owners of files everywhere can be
//     looked at, for Landlock does not know of stat; inline code starts no
//     processes, and commands none as root without a control group, because
//     nothing would bound them; protected paths are restored after the run
//     rather than held by the kernel (package guard).
//   - Where the kernel's Landlock has no scopes, tools at level reduced that
//     run as the worker's own user can send it signals.
//   - Inside its project a tool is the directory's owner: what that may read
//     there, it may read.
//
// # Who a tool is
//
// At level full there is one user, 1000, and it has no capabilities. A
// privileged worker maps it to a host user that no one else has, and the
// project's owner to it in the project's mount alone: what a tool writes is the
// owner's, root's too, and outside of the project it is nobody. Where a file
// system cannot be mapped so, the tool's user is the owner, and Missing has
// idmap. An unprivileged worker's tools are its own user. At level reduced the
// user is the project's owner where the worker may switch users.
//
// # The life of a run
//
// The worker executes itself under another name (package shim): the process of
// that name is the first of new namespaces, or a subreaper. It builds the room
// (package room), forks, and the child binds itself by raw system calls before
// it executes the program (package launch): control group, descriptors,
// limits, bounding set, user, capabilities, no_new_privs, Landlock domain,
// system call filter. The supervisor keeps its rights and is out of reach: in
// another Landlock domain, not dumpable, spared by the filter. It reports
// twice, in frames that the worker treats as hostile (package frame). When the
// program ends, at a timeout, at a cancellation and at the worker's death the
// whole tree is killed, and only then is the answer out.
//
// Inline code mostly finds a process ready that was forked and confined ahead
// (package warm); nothing but the time tells.
//
// # How to verify
//
// The tests named TestCase are the attacks, run at every level, as root, as an
// unprivileged user and in a container of an engine's default profile
// (integration/sandbox_docker_test.go). The filter is interpreted call by call
// for both architectures.
package sandbox
