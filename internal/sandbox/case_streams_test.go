package sandbox

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"testing"
	"time"
)

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestCase10EndlessOutput(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		var out counter
		e, err := l.runner.Run(l.Context(), &Spec{
			Root: l.root, Argv: []string{"sh", "-c", "exec cat /dev/zero"}, Limits: timeout(0.5), Stdout: &out, Stderr: io.Discard,
			Env: []string{"PATH=/usr/bin:/bin"},
		})
		if err != nil {
			l.Fatal(err)
		}
		if !e.TimedOut || out.n < 1<<20 {
			l.Errorf("after %d bytes: %+v", out.n, e)
		}
	})
}

func TestCase11OrderOfOutput(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wants(l.python(`
import sys
for i in range(5):
    print('out', i)
    print('err', i, file=sys.stderr)
`), "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\nout 4\nerr 4\n")
		r := l.shell("echo out; echo err >&2")
		if r.out != "out\n" || r.err != "err\n" {
			l.Errorf("streams of a command: %v", r)
		}
	})
}

func TestCase13InputNeverRead(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		big := []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
		l.wants(l.run(Spec{Argv: []string{"echo", "done"}, Input: big}), "done\n")
		l.wants(l.run(Spec{Code: []byte("print(len(input_data))"), Input: big}), "8388608\n")
		// Nor does it hang when the tool closes it and goes on.
		l.wants(l.run(Spec{Argv: []string{"sh", "-c", "exec <&-; echo done"}, Input: big}), "done\n")
	})
}

func TestCase13InputReadWhileOutputIsWritten(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		big := make([]byte, 4<<20)
		if _, err := rand.Read(big); err != nil {
			l.Fatal(err)
		}
		r := l.run(Spec{Argv: []string{"cat"}, Input: big})
		if r.Code != 0 || !bytes.Equal([]byte(r.out), big) {
			l.Errorf("cat gave %d bytes of %d, %+v", len(r.out), len(big), r.Exit)
		}
	})
}

// slow is a writer that nobody should wait for.
type slow struct{ release chan struct{} }

func (s slow) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func TestCaseWriterThatBlocks(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		w := slow{make(chan struct{})}
		time.AfterFunc(300*time.Millisecond, func() { close(w.release) })
		e, err := l.runner.Run(l.Context(), &Spec{
			Root: l.root, Argv: []string{"sh", "-c", "exec cat /dev/zero"}, Limits: timeout(0.2), Stdout: w, Env: []string{"PATH=/usr/bin:/bin"},
		})
		if err != nil || !e.TimedOut {
			l.Errorf("%+v, %v", e, err)
		}
	})
}

func TestCaseValueAndName(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		r := l.python("result = {'a': [1, None, 'x']}\nraise ValueError('x')")
		if r.Code != 1 || string(r.Value) != `{"a":[1,null,"x"]}` || !strings.Contains(r.out, `File "<tool>", line 2`) {
			l.Errorf("value %q, %v", r.Value, r)
		}
		r = l.python("result = object()")
		if r.Value != nil || r.ValueError == "" {
			l.Errorf("value of an object: %q, %v", r.Value, r)
		}
		if r = l.python("pass"); r.Value != nil || r.ValueError != "" {
			l.Errorf("value of nothing: %q, %v", r.Value, r)
		}
	})
}
