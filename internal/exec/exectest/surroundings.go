package exectest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

var surroundings = []test{
	{"case 36: the environment of a command is exactly the task's", func(t *testing.T, s *Subject) {
		hostileEnvironment(t)
		task := s.command("env", "-0")
		task.Env = append(task.Env, "GREETING=hello", "EMPTY=", "TWO=a\nb=c")
		e := s.run(t, task)
		e.wantExit(t, 0)
		got := strings.Split(strings.TrimSuffix(e.stdout, "\x00"), "\x00")
		s.sameEnvironment(t, got, task.Env)
	}},
	{"case 36: the environment of code is exactly the task's", func(t *testing.T, s *Subject) {
		hostileEnvironment(t)
		task := s.code("import os\nresult = [k + '=' + v for k, v in os.environ.items()]")
		task.Env = append(task.Env, "GREETING=hello", "EMPTY=", "TWO=a\nb=c")
		e := s.run(t, task)
		e.wantExit(t, 0)
		var got []string
		if err := json.Unmarshal(e.Value, &got); err != nil {
			t.Fatal(err)
		}
		s.sameEnvironment(t, got, task.Env)
	}},
	{"the working directory is the root", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			e := s.run(t, make("import os; print(os.getcwd())"))
			e.wantExit(t, 0)
			if e.all() != s.Inside+"\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"descriptors of the worker are not passed", func(t *testing.T, s *Subject) {
		const source = `
import os
found = []
for fd in range(3, 300):
    try: found.append((fd, os.readlink('/proc/self/fd/%d' % fd)))
    except OSError: pass
# Those that the interpreter itself has just made are pipes; nothing of the worker's is.
print([f for f in found if not f[1].startswith('pipe:') and '/proc' not in f[1]])
`
		for form, make := range s.forms() {
			e := s.run(t, make(source))
			e.wantExit(t, 0)
			if e.all() != "[]\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 26: nothing is carried over to the next execution", func(t *testing.T, s *Subject) {
		const soil = `
import os, signal, sys, builtins, json
os.environ['CARRIED'] = '1'
builtins.carried = 1
json.carried = 1
sys.path.insert(0, '/carried')
sys.argv.append('carried')
os.umask(0)
os.chdir('/')
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
carried = 1
result = 'soiled'
`
		const look = `
import os, signal, sys, builtins, json
umask = os.umask(0o22)
result = [os.environ.get('CARRIED'), hasattr(builtins, 'carried'), hasattr(json, 'carried'), '/carried' in sys.path, 'carried' in sys.argv,
          umask == 0, os.getcwd() == '/', signal.getsignal(signal.SIGTERM) == signal.SIG_IGN,
          len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), 'carried' in globals()]
`
		for range 3 {
			e := s.run(t, s.code(soil))
			e.wantExit(t, 0)
			e = s.run(t, s.code(look))
			e.wantExit(t, 0)
			if !sameJSON(string(e.Value), `[null, false, false, false, false, false, false, false, 0, false]`) {
				t.Errorf("%s", e)
			}
		}
	}},
	{"case 26: a file in /tmp is unseen by the next execution", func(t *testing.T, s *Subject) {
		if !s.PrivateTmp {
			t.Skip("/tmp of this backend is shared")
		}
		for form, make := range s.forms() {
			s.run(t, make("open('/tmp/carried', 'w').write('x')")).wantExit(t, 0)
			e := s.run(t, make("import os; print(os.listdir('/tmp'))"))
			e.wantExit(t, 0)
			if strings.Contains(e.all(), "carried") {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 27: nothing of the network is reachable", func(t *testing.T, s *Subject) {
		if !s.NoNetwork {
			t.Skip("this backend does not confine the network")
		}
		for form, make := range s.forms() {
			e := s.run(t, make(`
import socket
for address in (('127.0.0.1', 4222), ('192.0.2.1', 80)):
    try:
        socket.create_connection(address, timeout=5)
        print('connected', address)
    except OSError: pass
try: print(socket.getaddrinfo('example.com', 80))
except OSError: pass
`))
			e.wantExit(t, 0)
			if e.all() != "" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"what an execution used is measured", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			e := s.run(t, make("import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"))
			e.wantExit(t, 0)
			if e.Usage.CPUMS < 150 || e.Usage.CPUMS > 20_000 {
				t.Errorf("%s: %+v", form, e.Usage)
			}
		}
	}},
}

// hostileEnvironment gives the worker variables that no tool may see.
func hostileEnvironment(t *testing.T) {
	t.Setenv("EXECTEST_SECRET", "s3cret")
	t.Setenv("BASH_ENV", "/etc/profile")
	t.Setenv("ENV", "/etc/profile")
	t.Setenv("PYTHONPATH", "/nowhere")
	t.Setenv("PYTHONSTARTUP", "/nowhere")
	t.Setenv("LD_PRELOAD", "/nowhere.so")
	t.Setenv("LD_LIBRARY_PATH", "/nowhere")
}

func (s *Subject) sameEnvironment(t *testing.T, got, want []string) {
	t.Helper()
	got = slices.DeleteFunc(got, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(s.Adds, name)
	})
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
