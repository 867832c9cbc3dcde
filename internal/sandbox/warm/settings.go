package warm

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolworker/toolworker/internal/sandbox/landlock"
)

// Source is the program of the server, for python.Interpreter.Server.
//
//go:embed server.py
var Source string

// Settings is how the children of a server confine themselves.
type Settings struct {
	// Dir is the working directory of the runs.
	Dir string `json:"dir"`
	// Namespaces: each child gets process, mount and IPC namespaces of its
	// own, for which the server needs CAP_SYS_ADMIN.
	Namespaces bool `json:"namespaces"`
	// Mounts are made anew in each child; Again are existing ones that they
	// would hide. Both need Namespaces.
	Mounts []Mount  `json:"mounts"`
	Again  []string `json:"again"`
	// OwnNet: the network namespace has nobody in it but the runs, one after
	// the other.
	OwnNet bool `json:"own_net"`
	// UID and GID are switched to by the children, -1 keeps the server's.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// DropCaps: the children have no capability, the server only what it
	// needs, and neither can get any.
	DropCaps bool           `json:"drop_caps"`
	Landlock *landlock.Plan `json:"landlock"` // nil for no domain
	Filter   Program        `json:"filter"`   // of system calls; empty for none
	// MemoryBytes and PIDs bound a run where nothing else does, 0 does not.
	// The server looks every 10 ms. It ends a run that has too many processes
	// only if they are Uncounted: elsewhere a resource limit keeps them from
	// starting.
	MemoryBytes int64 `json:"memory_bytes"`
	PIDs        int64 `json:"pids"`
	Uncounted   bool  `json:"uncounted"`
	// Preload are the modules that every run finds imported.
	Preload []string `json:"preload"`
}

// Mount is a new file system.
type Mount struct {
	Kind    string `json:"kind"` // tmpfs, proc
	At      string `json:"at"`
	Flags   uint64 `json:"flags"` // unix.MS_*
	Options string `json:"options"`
	// Optional: it may be refused, where an outer container masks parts of
	// its own /proc.
	Optional bool `json:"optional"`
}

// Program is a filter program, struct sock_filter by struct sock_filter.
type Program []byte

// MarshalText implements encoding.TextMarshaler: hexadecimal.
func (p Program) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(p)), nil }

// initial is everything that the server reads before it is ready.
func (s *Settings) initial(prologue []byte) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode settings of a warm server: %w", err)
	}
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(b)))
	return slices.Concat(prologue, size, bytes.TrimSpace(b)), nil
}
