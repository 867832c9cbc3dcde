package sandbox

import (
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
)

// filters keeps the system call filters that were written already.
type filters struct {
	arch seccomp.Arch
	mu   sync.Mutex
	done map[seccomp.Options][]byte
}

func (f *filters) get(o seccomp.Options) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.done[o]; ok {
		return b
	}
	if f.done == nil {
		f.done = map[seccomp.Options][]byte{}
	}
	b := seccomp.Bytes(f.arch.Filter(o))
	f.done[o] = b
	return b
}
