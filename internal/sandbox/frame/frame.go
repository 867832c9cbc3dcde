// Package frame is what a worker and the supervisor of one sandbox say to
// each other over their socket. The supervisor lives beside hostile code:
// the worker bounds and checks every byte that comes from there.
package frame

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// Kind says what a frame means.
type Kind byte

// The kinds. A supervisor gets one Setup and perhaps a Kill; it answers with
// Failed, or with Started and, later, Exited.
const (
	Setup   Kind = 'S' // worker to supervisor: JSON
	Kill    Kind = 'K' // worker to supervisor: end the tree now
	Started Kind = 'R'
	Failed  Kind = 'F'
	Exited  Kind = 'X'
)

const (
	headerSize = 5 // little-endian length of the payload, kind
	// maxSetup bounds a Setup: an environment and arguments of the largest
	// size that the kernel takes fit several times.
	maxSetup = 32 << 20
	// maxReport bounds what a supervisor may say at once.
	maxReport = 4 << 10
	// exitedSize is that of the payload of an Exited.
	exitedSize = 4 + 3 + 4*8
)

func send(w io.Writer, k Kind, payload []byte) error {
	b := make([]byte, headerSize, headerSize+len(payload))
	binary.LittleEndian.PutUint32(b, uint32(len(payload)))
	b[4] = byte(k)
	_, err := w.Write(append(b, payload...))
	return err
}

func read(r io.Reader, limit uint32) (Kind, []byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n, k := binary.LittleEndian.Uint32(h[:]), Kind(h[4])
	if n > limit {
		return 0, nil, fmt.Errorf("frame of %d bytes: expected at most %d", n, limit)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, fmt.Errorf("frame %q cut short: %w", k, err)
	}
	return k, payload, nil
}

// WriteSetup sends v to a supervisor.
func WriteSetup(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode set-up: %w", err)
	}
	if len(b) > maxSetup {
		return fmt.Errorf("set-up of %d bytes: expected at most %d", len(b), maxSetup)
	}
	return send(w, Setup, b)
}

// ReadSetup receives v from the worker.
func ReadSetup(r io.Reader, v any) error {
	k, b, err := read(r, maxSetup)
	if err != nil {
		return err
	}
	if k != Setup {
		return fmt.Errorf("frame %q: expected a set-up", k)
	}
	return json.Unmarshal(b, v)
}

// WriteKill asks a supervisor to end its tree.
func WriteKill(w io.Writer) error { return send(w, Kill, nil) }

// ReadKill waits for the order to end the tree. A worker that is gone, or
// talks nonsense, means the same.
func ReadKill(r io.Reader) { _, _, _ = read(r, 0) }

// Report is what a supervisor says.
type Report struct {
	Kind Kind
	// Started: the room has no /proc.
	NoProc bool
	// Failed: why nothing was started. Step and Errno as in launch.Error,
	// Errno 0 when the text says it all.
	Step  string
	Errno uint32
	// Exited: the wait status of the main process, and what the tree used.
	Status uint32
	Killed bool // the supervisor was told to end it
	CPU    time.Duration
	MaxRSS int64 // bytes, of the largest process
	// What the supervisor saw where no control group looks: the limit of
	// memory exceeded, that of processes reached, and the most of both.
	OutOfMemory      bool
	TooManyProcesses bool
	MemoryPeak       int64
	PIDsPeak         int64
}

// Write sends the report.
func (r *Report) Write(w io.Writer) error {
	var b []byte
	switch r.Kind {
	case Started:
		b = append(b, flag(r.NoProc))
	case Failed:
		b = binary.LittleEndian.AppendUint32(b, r.Errno)
		step := r.Step
		if len(step) > maxReport-4 {
			step = step[:maxReport-4]
		}
		b = append(b, step...)
	case Exited:
		b = binary.LittleEndian.AppendUint32(b, r.Status)
		b = append(b, flag(r.Killed), flag(r.OutOfMemory), flag(r.TooManyProcesses))
		for _, n := range []int64{int64(r.CPU), r.MaxRSS, r.MemoryPeak, r.PIDsPeak} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	default:
		return fmt.Errorf("report of kind %q: expected started, failed or exited", r.Kind)
	}
	return send(w, r.Kind, b)
}

// ReadReport receives a report from the hostile side: whatever arrives, the
// result is a well-formed report or an error, and at most 4 KiB are held.
// io.EOF means that the supervisor is gone.
func ReadReport(r io.Reader) (*Report, error) {
	k, b, err := read(r, maxReport)
	if err != nil {
		return nil, err
	}
	rep := &Report{Kind: k}
	switch {
	case k == Started && len(b) == 1:
		rep.NoProc = b[0] == 1
	case k == Failed && len(b) >= 4 && utf8.Valid(b[4:]):
		rep.Errno = binary.LittleEndian.Uint32(b)
		rep.Step = string(b[4:])
	case k == Exited && len(b) == exitedSize:
		rep.Status = binary.LittleEndian.Uint32(b)
		rep.Killed, rep.OutOfMemory, rep.TooManyProcesses = b[4] == 1, b[5] == 1, b[6] == 1
		var n [4]int64
		for i := range n {
			if n[i] = int64(binary.LittleEndian.Uint64(b[7+8*i:])); n[i] < 0 {
				return nil, errors.New("report of negative usage")
			}
		}
		rep.CPU, rep.MaxRSS, rep.MemoryPeak, rep.PIDsPeak = time.Duration(n[0]), n[1], n[2], n[3]
	default:
		return nil, fmt.Errorf("frame %q of %d bytes: expected a report", k, len(b))
	}
	return rep, nil
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}
