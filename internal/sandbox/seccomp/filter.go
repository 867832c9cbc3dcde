package seccomp

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arch is an architecture that a filter can be written for.
type Arch struct {
	name  string
	audit uint32
	// foreign is the first number of calls that belong to another ABI of the
	// same architecture, 0 when there is none.
	foreign uint32
	number  func(name string) int
}

// The architectures.
var (
	AMD64 = Arch{"amd64", unix.AUDIT_ARCH_X86_64, 0x40000000, func(n string) int { return numbers[n].amd64 }}
	ARM64 = Arch{"arm64", unix.AUDIT_ARCH_AARCH64, 0, func(n string) int { return numbers[n].arm64 }}
)

// Native is the architecture of this process. It fails where no filter can
// be written.
func Native() (Arch, error) {
	for _, a := range []Arch{AMD64, ARM64} {
		if a.name == runtime.GOARCH {
			return a, nil
		}
	}
	return Arch{}, fmt.Errorf("no system call table for %s: expected amd64 or arm64", runtime.GOARCH)
}

// Filter is the program for the options.
func (a Arch) Filter(o Options) []unix.SockFilter {
	program := []unix.SockFilter{
		ins(load, offArch),
		{Code: jeq, Jt: 1, K: a.audit},
		ins(reply, retKill),
		ins(load, offNumber),
	}
	return append(program, tree(a.spans(o))...)
}

// span is a run of call numbers with the same body, up to the next span.
type span struct {
	first uint32
	body  body
}

func (a Arch) spans(o Options) []span {
	byNumber := map[uint32]body{}
	for name, b := range policy(o) {
		if n := a.number(name); n != absent {
			byNumber[uint32(n)] = b
		}
	}
	last := uint32(0)
	for name := range numbers {
		n := a.number(name)
		if n == absent {
			continue
		}
		last = max(last, uint32(n))
		if _, ok := byNumber[uint32(n)]; !ok {
			byNumber[uint32(n)] = refuse(eperm)
		}
	}
	var spans []span
	add := func(first uint32, b body) {
		if n := len(spans); n == 0 || !slices.Equal(spans[n-1].body, b) {
			spans = append(spans, span{first, b})
		}
	}
	for n := range last + 1 {
		b, known := byNumber[n]
		if !known {
			b = refuse(enosys)
		}
		add(n, b)
	}
	add(last+1, refuse(enosys))
	if a.foreign != 0 {
		add(a.foreign, refuse(enosys))
	}
	return spans
}

// tree finds the span of the loaded number by halving.
func tree(spans []span) []unix.SockFilter {
	if len(spans) == 1 {
		return spans[0].body
	}
	half := len(spans) / 2
	low, high := tree(spans[:half]), tree(spans[half:])
	jump := []unix.SockFilter{{Code: jge, Jt: uint8(len(low)), K: spans[half].first}}
	if len(low) > 255 { // too far for a conditional jump
		jump = []unix.SockFilter{{Code: jge, Jf: 1, K: spans[half].first}, {Code: ja, K: uint32(len(low))}}
	}
	return slices.Concat(jump, low, high)
}

// Bytes is a program as the kernel reads it, struct sock_filter after struct
// sock_filter.
func Bytes(program []unix.SockFilter) []byte {
	return slices.Clone(raw(program))
}

// Program is the reverse of Bytes.
func Program(b []byte) []unix.SockFilter {
	program := make([]unix.SockFilter, len(b)/unix.SizeofSockFilter)
	copy(raw(program), b)
	return program
}

func raw(program []unix.SockFilter) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(program))), len(program)*unix.SizeofSockFilter)
}
