package seccomp

import (
	"slices"
	"strings"
	"testing"
)

var (
	full        = Options{}
	fullNoMemfd = Options{NoMemfd: true}
	code        = Options{Shared: true, NoMemfd: true, NoProcesses: true}
	command     = Options{Shared: true, NoMemfd: true}
	networked   = Options{Shared: true, Inet: true}
	noUnix      = Options{NoUnix: true}
	all         = []Options{full, fullNoMemfd, code, command, networked, noUnix}
)

const (
	permit = retAllow
	perm   = retErrno | eperm
	access = retErrno | eacces
	nosys  = retErrno | enosys
	proto  = retErrno | eprotonosupport
	done   = retErrno // nothing is done, and that is called success
)

// cases are calls with arguments and what each of the options answers, in the
// order of all.
var cases = []struct {
	name string
	args []uint64
	want [6]uint32
}{
	{"read", nil, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"execve", nil, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"unshare", []uint64{0x10000000}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"setns", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"mount", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"ptrace", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"bpf", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"io_uring_setup", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"keyctl", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"userfaultfd", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone3", nil, [6]uint32{nosys, nosys, nosys, nosys, nosys, nosys}},
	{"openat2", nil, [6]uint32{nosys, nosys, nosys, nosys, nosys, nosys}},
	// A thread, a process, and a process in each kind of namespace.
	{"clone", []uint64{0x3d0f00}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"clone", []uint64{17}, [6]uint32{permit, permit, perm, permit, permit, permit}},
	{"clone", []uint64{0x01200011}, [6]uint32{permit, permit, perm, permit, permit, permit}},
	{"clone", []uint64{0x10000000 | 0x10000}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x20000000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x40000000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x08000000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x04000000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x02000000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x00020000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"clone", []uint64{0x00008000 | 17}, [6]uint32{perm, perm, perm, perm, perm, perm}}, // a child of the parent's
	{"fork", nil, [6]uint32{permit, permit, perm, permit, permit, permit}},
	{"vfork", nil, [6]uint32{permit, permit, perm, permit, permit, permit}},
	{"socket", []uint64{1, 1}, [6]uint32{permit, permit, access, access, access, access}},
	{"socket", []uint64{2, 1}, [6]uint32{permit, permit, access, access, permit, permit}},
	{"socket", []uint64{10, 1}, [6]uint32{permit, permit, access, access, permit, permit}},
	{"socket", []uint64{2, 1, 6}, [6]uint32{permit, permit, access, access, permit, permit}},
	{"socket", []uint64{10, 2 | 0o2000000, 17}, [6]uint32{permit, permit, access, access, permit, permit}},
	{"socket", []uint64{2, 2, 1}, [6]uint32{permit, permit, access, access, permit, permit}},
	{"socket", []uint64{2, 1, 262}, [6]uint32{proto, proto, access, access, proto, proto}}, // MPTCP
	{"socket", []uint64{2, 1, 132}, [6]uint32{proto, proto, access, access, proto, proto}}, // SCTP
	{"socket", []uint64{10, 5}, [6]uint32{proto, proto, access, access, proto, proto}},     // SCTP
	{"socket", []uint64{2, 2, 136}, [6]uint32{proto, proto, access, access, proto, proto}}, // UDP-Lite
	{"socket", []uint64{2, 3, 1}, [6]uint32{proto, proto, access, access, proto, proto}},   // raw
	{"socket", []uint64{16, 3}, [6]uint32{access, access, access, access, access, access}},
	{"socket", []uint64{40, 1}, [6]uint32{access, access, access, access, access, access}},
	{"socket", []uint64{38, 5}, [6]uint32{access, access, access, access, access, access}},
	{"socketpair", []uint64{1, 1 | 0o2000000}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"socketpair", []uint64{1, 5}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"socketpair", []uint64{1, 2}, [6]uint32{permit, permit, access, access, access, access}},
	{"socketpair", []uint64{2, 1}, [6]uint32{access, access, access, access, access, access}},
	{"kill", []uint64{1, 9}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"kill", []uint64{1<<32 | 1, 9}, [6]uint32{perm, perm, perm, perm, perm, perm}}, // the kernel reads 32 bits
	{"kill", []uint64{2, 9}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"kill", []uint64{^uint64(0), 9}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"tgkill", []uint64{1, 5, 9}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"tkill", []uint64{5, 9}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"pidfd_open", []uint64{1}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"pidfd_open", []uint64{5}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"pidfd_send_signal", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"prlimit64", []uint64{0, 7}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"prlimit64", []uint64{1, 7}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"prlimit64", []uint64{9, 7}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"prlimit64", []uint64{0, 4, 0}, [6]uint32{permit, permit, permit, permit, permit, permit}}, // core dumps: asked for
	{"prlimit64", []uint64{9, 4, 0x7f0000000000}, [6]uint32{done, done, done, done, done, done}},
	{"setrlimit", []uint64{4, 0x1000}, [6]uint32{done, done, done, done, done, done}},
	{"setrlimit", []uint64{7, 0x1000}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"sched_setscheduler", []uint64{0, 5}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"sched_setscheduler", []uint64{9, 5}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"sched_setaffinity", []uint64{9}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"sched_setattr", []uint64{9}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"sched_setparam", []uint64{9}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"io_setup", nil, [6]uint32{nosys, nosys, nosys, nosys, nosys, nosys}},
	{"sync", nil, [6]uint32{done, done, done, done, done, done}},
	{"syncfs", nil, [6]uint32{done, done, done, done, done, done}},
	{"fsync", nil, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"memfd_create", nil, [6]uint32{permit, perm, perm, perm, permit, permit}},
	{"memfd_secret", nil, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"shmget", nil, [6]uint32{permit, perm, perm, perm, perm, permit}},
	{"msgget", nil, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"chmod", []uint64{0, 0o755}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"chmod", []uint64{0, 0o4755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"fchmod", []uint64{3, 0o755}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"fchmod", []uint64{3, 0o2755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"fchmodat", []uint64{0, 0, 0o755}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"fchmodat", []uint64{0, 0, 0o6755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"fchmodat2", []uint64{0, 0, 0o4755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"open", []uint64{0, 0o101, 0o644}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"open", []uint64{0, 0o101, 0o4755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"open", []uint64{0, 0, 0o4755}, [6]uint32{permit, permit, permit, permit, permit, permit}}, // no file is made, the mode is noise
	{"openat", []uint64{0, 0, 0o101, 0o2755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"openat", []uint64{0, 0, 0o20200002, 0o4700}, [6]uint32{perm, perm, perm, perm, perm, perm}}, // O_TMPFILE
	{"openat", []uint64{0, 0, 0o2, 0o4755}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"creat", []uint64{0, 0o4755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"mknodat", []uint64{0, 0, 0o104755}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"mknodat", []uint64{0, 0, 0o010644}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"utimensat", []uint64{3, 0}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"utimensat", []uint64{3, 0x7f0000000000}, [6]uint32{permit, permit, perm, perm, perm, permit}}, // only the high half is set
	{"utimensat", []uint64{3, 0x1000}, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"setxattr", nil, [6]uint32{permit, permit, perm, perm, perm, permit}},
	{"ioctl", []uint64{0, 0x5412}, [6]uint32{perm, perm, perm, perm, perm, perm}},
	{"ioctl", []uint64{0, 0x5401}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"personality", []uint64{0xffffffff}, [6]uint32{permit, permit, permit, permit, permit, permit}},
	{"personality", []uint64{0x400000}, [6]uint32{perm, perm, perm, perm, perm, perm}},
}

func TestFilterAnswersEveryCaseOnBothArchitectures(t *testing.T) {
	for _, arch := range []Arch{AMD64, ARM64} {
		for i, o := range all {
			program := arch.Filter(o)
			for _, c := range cases {
				n := arch.number(c.name)
				if n == absent {
					continue
				}
				sent := call{number: uint32(n), arch: arch.audit}
				copy(sent.args[:], c.args)
				got, err := interpret(program, sent)
				if err != nil {
					t.Fatalf("%s %+v: %s: %v", arch.name, o, c.name, err)
				}
				if got != c.want[i] {
					t.Errorf("%s %+v: %s%#x gives %#x, want %#x", arch.name, o, c.name, c.args, got, c.want[i])
				}
			}
		}
	}
}

// TestFilterAllowsNothingElse calls every number there is, and many more,
// with arguments of zero.
func TestFilterAllowsNothingElse(t *testing.T) {
	for _, arch := range []Arch{AMD64, ARM64} {
		names := map[uint32]string{}
		for name := range numbers {
			if n := arch.number(name); n != absent {
				if other, taken := names[uint32(n)]; taken {
					t.Fatalf("%s: %s and %s have the number %d", arch.name, name, other, n)
				}
				names[uint32(n)] = name
			}
		}
		for _, o := range all {
			program, rules := arch.Filter(o), policy(o)
			for n := range uint32(2000) {
				got, err := interpret(program, call{number: n, arch: arch.audit})
				if err != nil {
					t.Fatal(err)
				}
				name, known := names[n]
				_, listed := rules[name]
				switch {
				case !known && got != nosys:
					t.Errorf("%s: unknown call %d gives %#x", arch.name, n, got)
				case known && !listed && got != perm:
					t.Errorf("%s %+v: %s is on no list and gives %#x", arch.name, o, name, got)
				case known && listed && got == retKill:
					t.Errorf("%s %+v: %s ends the process", arch.name, o, name)
				}
			}
		}
	}
}

func TestFilterEndsForeignArchitectures(t *testing.T) {
	for _, arch := range []Arch{AMD64, ARM64} {
		program := arch.Filter(full)
		for _, foreign := range []uint32{0x40000003 /* i386 */, 0x40000028 /* arm */, AMD64.audit, ARM64.audit, 0} {
			if foreign == arch.audit {
				continue
			}
			for n := range uint32(500) {
				if got, err := interpret(program, call{number: n, arch: foreign}); err != nil || got != retKill {
					t.Fatalf("%s: call %d of architecture %#x gives %#x, %v", arch.name, n, foreign, got, err)
				}
			}
		}
	}
	for n := range uint32(600) {
		if got, _ := interpret(AMD64.Filter(full), call{number: 0x40000000 + n, arch: AMD64.audit}); got != nosys {
			t.Fatalf("x32 call %d gives %#x", n, got)
		}
	}
}

func TestFilterFitsTheKernel(t *testing.T) {
	for _, arch := range []Arch{AMD64, ARM64} {
		for _, o := range all {
			if n := len(arch.Filter(o)); n > 4096 {
				t.Errorf("%s %+v: %d instructions, the kernel takes 4096", arch.name, o, n)
			}
		}
	}
}

func TestListsNameKnownCallsOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range slices.Concat(allowed, attributes, ownNamespaces, uncounted, scheduling, absentOnPurpose, pretended) {
		if _, ok := numbers[name]; !ok {
			t.Errorf("%s is in no table", name)
		}
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
	}
	for _, o := range all {
		for name := range policy(o) {
			if _, ok := numbers[name]; !ok || strings.TrimSpace(name) != name {
				t.Errorf("policy names %q, which is in no table", name)
			}
		}
	}
}

func TestBytesAndProgramAreReverse(t *testing.T) {
	program := AMD64.Filter(full)
	if got := Program(Bytes(program)); !slices.Equal(got, program) {
		t.Error("a program changed on its way through bytes")
	}
	if len(Program(nil)) != 0 {
		t.Error("no bytes give a program")
	}
}

func BenchmarkFilter(b *testing.B) {
	for b.Loop() {
		AMD64.Filter(full)
	}
}
