package container

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

// trailer passes on what is written, until the secret of a supervisor comes:
// the rest is what the supervisor has to say.
type trailer struct {
	to    io.Writer
	nonce string

	held  []byte // may be the beginning of the secret
	found bool
	said  []byte

	tooMany bool          // there were more processes than allowed
	cpu     time.Duration // what the command used, as far as the shell knows
}

const maxTrailer = 8 << 10

func (t *trailer) Write(p []byte) (int, error) {
	if t.found {
		t.said = append(t.said, p[:min(len(p), maxTrailer-len(t.said))]...)
		return len(p), nil
	}
	mark := []byte("\n" + t.nonce + " ")
	buf := append(t.held, p...)
	if before, after, ok := bytes.Cut(buf, mark); ok {
		t.pass(before)
		t.found, t.held = true, nil
		_, _ = t.Write(after)
		return len(p), nil
	}
	keep := 0
	for n := min(len(mark)-1, len(buf)); n > 0 && keep == 0; n-- {
		if bytes.HasSuffix(buf, mark[:n]) {
			keep = n
		}
	}
	t.pass(buf[:len(buf)-keep])
	t.held = append([]byte(nil), buf[len(buf)-keep:]...)
	return len(p), nil
}

func (t *trailer) pass(p []byte) {
	if len(p) > 0 {
		_, _ = t.to.Write(p)
	}
}

// end is called after the last Write: the exit code, or why nothing was
// started; ok is false when the supervisor said nothing that makes sense.
func (t *trailer) end() (code int, why string, ok bool) {
	t.pass(t.held)
	t.held = nil
	if rest, ok := bytes.CutPrefix(t.said, []byte("pids ")); ok {
		t.tooMany = true
		if _, after, ok := bytes.Cut(rest, []byte("\n"+t.nonce+" ")); ok {
			t.said = after
		}
	}
	kind, rest, _ := strings.Cut(strings.TrimSuffix(string(t.said), "\n"), " ")
	switch kind {
	case "why":
		return -1, strings.ToValidUTF8(rest, "\uFFFD"), rest != ""
	case "exit":
		line, times, _ := strings.Cut(rest, "\n")
		code, err := strconv.Atoi(line)
		t.cpu = childTimes(times)
		return code, "", err == nil && code >= 0 && code <= 255
	}
	return -1, "", false
}

// childTimes adds what the shell's times says of its children: the fields of
// its second line, each like 1m2.34s.
func childTimes(s string) time.Duration {
	fields := strings.Fields(s)
	if len(fields) < 4 {
		return 0
	}
	var sum time.Duration
	for _, f := range fields[2:4] {
		d, err := time.ParseDuration(f)
		if err != nil || d < 0 {
			return 0
		}
		sum += d
	}
	return sum
}

// limited keeps the first bytes of what is written to it.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, err := l.w.Write(p[:n])
	return len(p), err
}
