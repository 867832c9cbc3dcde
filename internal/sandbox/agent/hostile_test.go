package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/sandbox"
)

// raw encodes a frame without any of the writer's checks.
func raw(k kind, id uint32, payload string) string {
	b := []byte{byte(k)}
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return string(b) + payload
}

func helloFrame(nonce string) string {
	var b bytes.Buffer
	_ = greetAs(&b, nonce)
	return b.String()
}

// stream is a connection whose far side has said everything in advance.
type stream struct {
	io.Reader
	closed chan struct{}
}

func newStream(said string) *stream {
	return &stream{Reader: strings.NewReader(said), closed: make(chan struct{})}
}

func (s *stream) Write(p []byte) (int, error) { return len(p), nil }
func (s *stream) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func TestSessionRefusesWhatIsNoHello(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"nothing":             "",
		"an engine's words":   "OCI runtime exec failed: no such file or directory\n",
		"another nonce":       helloFrame("other"),
		"another kind":        raw(kindPong, 0, ""),
		"no JSON":             raw(kindHello, 0, "\x00{"),
		"unknown member":      raw(kindHello, 0, "\x00"+`{"version":1,"nonce":"n","x":1}`),
		"too long a frame":    "\x01\x00\x00\x00\x00\xff\xff\xff\xff",
		"empty frame":         raw(kindHello, 0, ""),
		"endless hello":       strings.Repeat(raw(kindHello, 0, "\x01"+strings.Repeat(" ", maxPayload-1)), 100),
		"ends in its payload": raw(kindHello, 0, "\x00"+`{"version":1`)[:12],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := newStream(said)
			if _, err := NewSession(t.Context(), conn, "n"); err == nil {
				t.Error("taken for an agent")
			}
			<-conn.closed
		})
	}
}

func TestSessionQuotesWhatSpeaksInsteadOfAnAgent(t *testing.T) {
	t.Parallel()
	_, err := NewSession(t.Context(), newStream("exec: \"/x\": no such file\n"), "n")
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v, want the words that came", err)
	}
}

func TestSessionSurvivesHostileAgent(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", maxPayload)
	for name, said := range map[string]string{
		"silence":           "",
		"unknown kind":      raw(99, 1, ""),
		"a worker's frame":  raw(kindRun, 1, ""),
		"never started":     raw(kindStdout, 7, "x"),
		"the session's id":  raw(kindStdout, 0, "x"),
		"empty output":      raw(kindStdout, 1, ""),
		"beyond its credit": strings.Repeat(raw(kindStdout, 1, big), window/maxPayload+1),
		"empty exit":        raw(kindExit, 1, ""),
		"exit is no JSON":   raw(kindExit, 1, "\x00nonsense"),
		"exit code 9999":    raw(kindExit, 1, "\x00"+`{"code":9999}`),
		"unknown limit":     raw(kindExit, 1, "\x00"+`{"code":1,"hit":"internal"}`),
		"duplicate members": raw(kindExit, 1, "\x00"+`{"code":1,"code":2}`),
		"half a frame":      raw(kindStdout, 1, "xyz")[:10],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := make(chan struct{})
			conn := &gated{stream: newStream(""), started: started, said: helloFrame("n") + said}
			conn.Reader = strings.NewReader(helloFrame("n"))
			s, err := NewSession(t.Context(), conn, "n")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Run(t.Context(), &sandbox.Spec{Argv: []string{"x"}, Stdout: blocked{s.done}})
			if !isFault(err) {
				t.Errorf("%v, want a fault", err)
			}
		})
	}
}

// gated says the rest once the run has been sent.
type gated struct {
	*stream
	started chan struct{}
	said    string
	rest    io.Reader
}

func (g *gated) Write(p []byte) (int, error) {
	if len(p) > 0 && kind(p[0]) == kindRun {
		close(g.started)
	}
	return len(p), nil
}

func (g *gated) Read(p []byte) (int, error) {
	n, err := g.stream.Read(p)
	if n > 0 || err == nil {
		return n, err
	}
	if g.rest == nil {
		select {
		case <-g.started:
		case <-g.closed:
			return 0, io.EOF
		}
		g.rest = strings.NewReader(g.said[len(helloFrame("n")):])
	}
	return g.rest.Read(p)
}

// blocked takes nothing until the session is over.
type blocked struct{ until <-chan struct{} }

func (b blocked) Write(p []byte) (int, error) {
	<-b.until
	return 0, io.ErrClosedPipe
}

func TestAgentRefusesWhatBreaksTheProtocol(t *testing.T) {
	t.Parallel()
	header := string(runHeader{spec: 2, code: 0, input: 10}.append(nil))
	huge := string(runHeader{spec: 1 << 30}.append(nil))
	for name, said := range map[string]string{
		"unknown kind":     raw(77, 1, ""),
		"an agent's frame": raw(kindHello, 0, ""),
		"short run":        raw(kindRun, 1, "x"),
		"id zero":          raw(kindRun, 0, header),
		"opened twice":     raw(kindRun, 1, header) + raw(kindRun, 1, header),
		"huge spec":        raw(kindRun, 1, huge),
		"spec is no JSON":  raw(kindRun, 1, string(runHeader{spec: 2}.append(nil))+"xx"),
		"too much body":    raw(kindRun, 1, header) + raw(kindBody, 1, strings.Repeat("x", 100)),
		"short credit":     raw(kindCredit, 1, "x"),
		"read of nothing":  raw(kindRead, 1, "{"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Serve(t.Context(), strings.NewReader(said), io.Discard, ServeConfig{Runner: runnerFunc(echo)})
			if !errors.Is(err, errProtocol) {
				t.Errorf("%v, want a protocol violation", err)
			}
		})
	}
}

func TestAgentAnswersACancelOfAHalfSentRun(t *testing.T) {
	t.Parallel()
	said := raw(kindRun, 1, string(runHeader{spec: 2, input: 10}.append(nil))) + raw(kindCancel, 1, "") + raw(kindBody, 1, "xx")
	var out bytes.Buffer
	if err := Serve(t.Context(), strings.NewReader(said), &out, ServeConfig{Runner: runnerFunc(echo)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"signal":"SIGKILL"`) {
		t.Errorf("no exit in %q", out.String())
	}
}

func FuzzServe(f *testing.F) {
	spec, _ := encode(newSpecDoc(&sandbox.Spec{Argv: []string{"x"}}))
	f.Add([]byte(raw(kindRun, 1, string(runHeader{spec: uint32(len(spec))}.append(nil))+string(spec)) + raw(kindCancel, 1, "")))
	f.Add([]byte(raw(kindPing, 0, "") + raw(kindRead, 2, `{"root":"/","path":"a","max":1}`) + raw(kindCredit, 2, "\x00\x00\x00\x01")))
	f.Add([]byte(raw(kindStage, 3, string(runHeader{spec: 12, code: 1}.append(nil))+`{"key":"ab"}x`)))
	f.Fuzz(func(_ *testing.T, said []byte) {
		_ = Serve(context.Background(), bytes.NewReader(said), io.Discard, ServeConfig{Runner: runnerFunc(echo), ReadFile: readNothing, Stage: stageNowhere})
	})
}

func FuzzSession(f *testing.F) {
	f.Add([]byte(raw(kindStdout, 1, "hello") + raw(kindExit, 1, "\x00"+`{"code":0}`)))
	f.Add([]byte(raw(kindExit, 1, "\x01"+`{"code":`) + raw(kindExit, 1, "\x00"+`0,"value":[1]}`)))
	f.Fuzz(func(t *testing.T, said []byte) {
		conn := &gated{stream: newStream(helloFrame("n")), started: make(chan struct{}), said: helloFrame("n") + string(said)}
		s, err := NewSession(context.Background(), conn, "n")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		exit, err := s.Run(context.Background(), &sandbox.Spec{Argv: []string{"x"}, Stdout: io.Discard, Stderr: io.Discard})
		if (exit == nil) == (err == nil) {
			t.Errorf("exit %v and error %v", exit, err)
		}
	})
}
