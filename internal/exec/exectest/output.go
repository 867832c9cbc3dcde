package exectest

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

var output = []test{
	{"case 11: the streams of code are one, in the order written", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import sys\nfor i in range(500):\n  print(i)\n  print(-i, file=sys.stderr)"))
		e.wantExit(t, 0)
		var want strings.Builder
		for i := range 500 {
			fmt.Fprintf(&want, "%d\n%d\n", i, -i)
		}
		if e.combined != want.String() || e.Stdout != nil || e.Stderr != nil {
			t.Errorf("%s", e)
		}
	}},
	{"case 11: what code writes without a newline keeps its order too", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import sys\nsys.stdout.write('a'); sys.stderr.write('b'); sys.stdout.write('c'); sys.stderr.write('d\\n'); print('e', end='')"))
		e.wantExit(t, 0)
		if e.combined != "abcd\ne" {
			t.Errorf("%s", e)
		}
	}},
	{"case 11: the streams of a command are two", func(t *testing.T, s *Subject) {
		e := s.run(t, s.python("import sys\nprint('out'); print('err', file=sys.stderr)"))
		e.wantExit(t, 0)
		if e.stdout != "out\n" || e.stderr != "err\n" || e.Combined != nil {
			t.Errorf("%s", e)
		}
	}},
	{"case 10: endless output without a newline is cut at exactly the cap", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("import sys\nwhile True: sys.stdout.write('x' * 1000)")
			task.Limits.TimeoutSeconds, task.Limits.MaxOutputBytes = 1, 100_001
			e := s.run(t, task)
			if got := len(e.all()); got != 100_001 || !e.Truncated || !e.TimedOut {
				t.Errorf("%s: %d bytes, %s", form, got, e)
			}
		}
	}},
	{"output beyond the cap does not fail a run", func(t *testing.T, s *Subject) {
		for _, extra := range []int{0, 1, 300_000} {
			for form, make := range s.forms() {
				task := make(fmt.Sprintf("print('x' * %d, end='')", 70_000+extra))
				task.Limits.MaxOutputBytes = 70_000
				e := s.run(t, task)
				e.wantExit(t, 0)
				if len(e.all()) != 70_000 || e.Truncated != (extra > 0) {
					t.Errorf("%s, %d more: %d bytes, %s", form, extra, len(e.all()), e)
				}
			}
		}
	}},
	{"the cap is per stream for commands and on both together for code", func(t *testing.T, s *Subject) {
		const source = "import sys\nfor i in range(50):\n  print('o' * 99); print('e' * 99, file=sys.stderr)"
		task := s.python(source)
		task.Limits.MaxOutputBytes = 3_000
		if e := s.run(t, task); len(e.stdout) != 3_000 || len(e.stderr) != 3_000 || !e.Truncated {
			t.Errorf("command: %d, %d, %s", len(e.stdout), len(e.stderr), e)
		}
		task = s.code(source)
		task.Limits.MaxOutputBytes = 3_000
		if e := s.run(t, task); len(e.combined) != 3_000 || !e.Truncated || strings.Count(e.combined, "e") != 15*99 {
			t.Errorf("code: %d, %s", len(e.combined), e)
		}
	}},
	{"a stream that is cut ends with a whole character", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("print('€' * 1000)")
			task.Limits.MaxOutputBytes = 100
			if e := s.run(t, task); e.all() != strings.Repeat("€", 33) || !e.Truncated {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 34: 50 MiB and a byte", func(t *testing.T, s *Subject) {
		task := s.python("import sys\nfor i in range(50): sys.stdout.write('x' * (1 << 20))\nsys.stdout.write('y')")
		e := s.run(t, task)
		e.wantExit(t, 0)
		if len(e.stdout) != 50<<20 || !e.Truncated || strings.Contains(e.stdout, "y") {
			t.Errorf("%d bytes, %s", len(e.stdout), e)
		}
	}},
	{"case 12: bytes that are no UTF-8, and NUL", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			e := s.run(t, make(`import sys; sys.stdout.buffer.write(b"a\xffb\x00c\xe2\x82\n"); sys.stdout.flush()`))
			e.wantExit(t, 0)
			if e.all() != "a\xffb\x00c\xe2\x82\n" {
				t.Errorf("%s: %q", form, e.all())
			}
		}
	}},
	{"case 12: a lone surrogate is Python's error", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			e := s.run(t, make(`print("\ud800")`))
			e.wantExit(t, 1)
			if !strings.Contains(e.all(), "UnicodeEncodeError") || !utf8.ValidString(e.all()) {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"raw descriptors of code arrive", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import os, sys\nos.write(1, b'one\\n'); os.write(2, b'two\\n'); print('three')"))
		e.wantExit(t, 0)
		for _, line := range []string{"one\n", "two\n", "three\n"} {
			if strings.Count(e.combined, line) != 1 {
				t.Errorf("%s", e)
			}
		}
	}},
	{"output of child processes arrives", func(t *testing.T, s *Subject) {
		for form, make := range s.forking(t) {
			e := s.run(t, make("import subprocess\nsubprocess.run(['echo', 'child'], check=True)"))
			e.wantExit(t, 0)
			if e.all() != "child\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"live output is what is kept, with its offsets", func(t *testing.T, s *Subject) {
		task := s.python("import sys\nfor i in range(6000): print('o', i); print('e', i, file=sys.stderr)")
		task.Limits.MaxOutputBytes = 20_000
		var mu sync.Mutex
		live := map[string]*bytes.Buffer{"stdout": {}, "stderr": {}}
		task.Live = func(stream string, offset int64, p []byte) {
			mu.Lock()
			defer mu.Unlock()
			if b := live[stream]; b == nil || offset != int64(b.Len()) {
				t.Errorf("%q at %d", stream, offset)
			} else {
				b.Write(p)
			}
		}
		e := s.run(t, task)
		e.wantExit(t, 0)
		mu.Lock()
		defer mu.Unlock()
		if live["stdout"].String() != e.stdout || live["stderr"].String() != e.stderr || len(e.stdout) != 20_000 {
			t.Errorf("live %d and %d bytes, kept %d and %d", live["stdout"].Len(), live["stderr"].Len(), len(e.stdout), len(e.stderr))
		}
	}},
	{"sixteen at once do not mix", func(t *testing.T, s *Subject) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				source := fmt.Sprintf("import time\nfor n in range(200):\n  print(%d, n)\n  if n %% 50 == 0: time.sleep(0.01)\nresult = %d", i, i)
				e := s.runAmongOthers(t, s.code(source))
				var want strings.Builder
				for n := range 200 {
					fmt.Fprintf(&want, "%d %d\n", i, n)
				}
				if e.combined != want.String() || string(e.Value) != fmt.Sprint(i) {
					t.Errorf("%d: %s", i, e)
				}
				if e := s.runAmongOthers(t, s.command("echo", fmt.Sprint(i))); e.stdout != fmt.Sprintln(i) {
					t.Errorf("%d: %s", i, e)
				}
			})
		}
		wg.Wait()
	}},
}
