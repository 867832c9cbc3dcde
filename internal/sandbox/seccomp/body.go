package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// What a filter can answer.
const (
	retAllow = 0x7fff0000
	retErrno = 0x00050000
	retKill  = 0x80000000 // the whole process, not only the thread

	eperm  = 1
	eacces = 13
	enosys = 38

	eprotonosupport = 93
)

// Offsets in struct seccomp_data. Both architectures are little-endian.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// body is the part of a program that is run once the call is known. It ends
// in an answer on every way.
type body []unix.SockFilter

const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jeq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jge   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	jset  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ja    = unix.BPF_JMP | unix.BPF_JA
	reply = unix.BPF_RET | unix.BPF_K
)

func ins(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func answer(v uint32) body { return body{ins(reply, v)} }

var allow = answer(retAllow)

// succeed says that the call was made, which it was not.
var succeed = answer(retErrno)

func refuse(errno uint32) body { return answer(retErrno | errno) }

// arg loads the low half of an argument: the kernel's own type of every
// argument that is looked at here has 32 bits or fewer that matter.
func arg(n int) unix.SockFilter { return ins(load, offArgs+8*uint32(n)) }

// ifAny runs yes if the argument has one of the bits.
func ifAny(n int, bits uint32, yes, no body) body {
	b := body{arg(n), {Code: jset, Jf: uint8(len(yes)), K: bits}}
	return slices.Concat(b, yes, no)
}

// ifEqual runs yes if the argument is one of the values.
func ifEqual(n int, values []uint32, yes, no body) body {
	return slices.Concat(body{arg(n)}, equal(values, yes, no))
}

// ifMasked is ifEqual of some bits of the argument.
func ifMasked(n int, mask uint32, values []uint32, yes, no body) body {
	return slices.Concat(body{arg(n), ins(and, mask)}, equal(values, yes, no))
}

func equal(values []uint32, yes, no body) body {
	var b body
	for i, v := range values {
		j := unix.SockFilter{Code: jeq, Jt: uint8(len(values) - 1 - i), K: v}
		if i == len(values)-1 {
			j.Jt, j.Jf = 0, uint8(len(yes))
		}
		b = append(b, j)
	}
	return slices.Concat(b, yes, no)
}

// ifNull runs yes if all 64 bits of the argument are zero.
func ifNull(n int, yes, no body) body {
	b := body{
		arg(n),
		{Code: jeq, Jf: uint8(2 + len(yes))},
		ins(load, offArgs+8*uint32(n)+4),
		{Code: jeq, Jf: uint8(len(yes))},
	}
	return slices.Concat(b, yes, no)
}
