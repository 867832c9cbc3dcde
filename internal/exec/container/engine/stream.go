package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/moby/moby/client"
)

// Exec is a command to start inside a running container.
type Exec struct {
	Argv []string
	Env  []string // added to what the container gives
	User string   // "" takes the container's
	Dir  string   // "" takes the container's
}

// Stream is a command running in a container: reading gives its stdout,
// writing goes to its stdin. Closing it closes its stdin; the engine does not
// end the command.
type Stream struct {
	engine *Engine
	id     string
	conn   client.HijackedResponse
	stderr io.Writer
	left   uint32 // bytes of the current chunk of stdout
}

// Start starts a command; its stderr goes to stderr, from within Read.
func (e *Engine) Start(ctx context.Context, container string, x Exec, stderr io.Writer) (*Stream, error) {
	created, err := e.client.ExecCreate(ctx, container, client.ExecCreateOptions{
		Cmd: x.Argv, Env: x.Env, User: x.User, WorkingDir: x.Dir,
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, e.wrap(err, "start command in container %s", container)
	}
	attached, err := e.client.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, e.wrap(err, "attach to command in container %s", container)
	}
	return &Stream{engine: e, id: created.ID, conn: attached.HijackedResponse, stderr: stderr}, nil
}

// Chunks of the multiplexed stream begin with a header of eight bytes: the
// stream, three zeros, the length in big endian.
const (
	chunkHeader = 8
	chunkStdout = 1
	chunkStderr = 2
)

// Read implements io.Reader for stdout.
func (s *Stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		var h [chunkHeader]byte
		if _, err := io.ReadFull(s.conn.Reader, h[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("engine cut the stream: %w", err)
			}
			return 0, err
		}
		size := binary.BigEndian.Uint32(h[4:])
		switch h[0] {
		case chunkStdout:
			s.left = size
		case chunkStderr:
			if _, err := io.CopyN(s.stderr, s.conn.Reader, int64(size)); err != nil {
				return 0, fmt.Errorf("read stderr of command: %w", err)
			}
		default:
			return 0, fmt.Errorf("engine sent a chunk of stream %d", h[0])
		}
	}
	n, err := s.conn.Reader.Read(p[:min(len(p), int(s.left))])
	s.left -= uint32(n)
	return n, err
}

func (s *Stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

// CloseWrite ends the command's stdin.
func (s *Stream) CloseWrite() error { return s.conn.CloseWrite() }

// Close gives the connection back.
func (s *Stream) Close() error { return s.conn.Conn.Close() }

// ExitCode is that of a command whose stdout has ended.
func (s *Stream) ExitCode(ctx context.Context) (int, error) {
	r, err := s.engine.client.ExecInspect(ctx, s.id, client.ExecInspectOptions{})
	if err != nil {
		return -1, s.engine.wrap(err, "inspect command")
	}
	if r.Running {
		return -1, fmt.Errorf("inspect command: it still runs")
	}
	return r.ExitCode, nil
}
