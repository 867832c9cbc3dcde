package container

import (
	"debug/elf"
	"fmt"
	"runtime"
)

// binary is the executable that becomes the agent.
type binary struct {
	path string
	arch string
	err  error // why it cannot be an agent
}

// inspectBinary tells whether the executable runs in a container whatever
// that contains: it must not need an interpreter or libraries.
func inspectBinary(path string) *binary {
	b := &binary{path: path, arch: runtime.GOARCH}
	f, err := elf.Open(path)
	if err != nil {
		b.err = fmt.Errorf("read worker's executable: %w", err)
		return b
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b.err = fmt.Errorf("the worker's executable is not static: build it with CGO_ENABLED=0")
		}
	}
	return b
}
