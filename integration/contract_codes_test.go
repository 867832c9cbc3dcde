package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const codesCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
protect: [kept]
---
kind: Project
id: frozen
host_sandbox_path: BASE/p
read_only: true
---
kind: Project
id: closed
enabled: false
---
kind: Project
id: narrow
host_sandbox_path: BASE/p
allow:
  environments: [host, container]
  inline: {enabled: true, environments: [container], writes: true, network: false}
  tools: [echo, boxed]
  pools: [default]
---
kind: Project
id: strict
host_sandbox_path: BASE/p
allow: {inline: {enabled: false}, pools: [gpu]}
---
kind: Project
id: coder
host_sandbox_path: BASE/p
allow: {environments: [host], inline: {enabled: true, writes: false}}
maximum: {timeout_seconds: 20, memory_bytes: 268435456}
---
kind: Project
id: gone
host_sandbox_path: BASE/nowhere
---
kind: Tool
name: echo
command: [cat]
input_schema:
  type: object
  required: [path, count]
  properties: {path: {type: string}, count: {type: integer, minimum: 1}}
  additionalProperties: false
---
kind: Tool
name: sleep
command: [sleep, "600"]
---
kind: Tool
name: fails
command: [sh, -c, "echo out; echo 'no such thing  ' >&2; exit 3"]
---
kind: Tool
name: dies
command: [sh, -c, "kill -SEGV $$"]
---
kind: Tool
name: absent
command: [no-such-command]
---
kind: Tool
name: needy
command: ["true"]
env_from: [CONTRACT_NOT_SET]
---
kind: Tool
name: big_file
command: [dd, if=/dev/zero, of=/tmp/big, bs=1M, count=8]
limits: {file_size_bytes: 1048576}
---
kind: Tool
name: typed
command: [echo, '{"n": "one"}']
output_schema: {type: object, required: [n, m], properties: {n: {type: integer}}}
---
kind: Tool
name: untyped
command: [echo, not json]
output_schema: {}
---
kind: Tool
name: writer
command: ["true"]
capability: {writes: true}
---
kind: Tool
name: off
command: ["true"]
enabled: false
---
kind: Tool
name: hostless
command: ["true"]
environments: [container]
---
kind: Tool
name: boxed
command: ["true"]
tool_env: container
`

// provocation is a request, and how it has to end.
type provocation struct {
	name       string
	project    string // "p" when empty
	attributes string
	data       string
	code       tool.Code
	message    string // exactly; or
	like       string // a regular expression that it matches
	check      func(t *testing.T, doc *event.ResultDoc)
}

// process checks how the process ended.
func process(exitCode int, signal string, timedOut bool) func(*testing.T, *event.ResultDoc) {
	return func(t *testing.T, doc *event.ResultDoc) {
		t.Helper()
		p := doc.Metadata.Process
		if p == nil || p.ExitCode != exitCode || p.Signal != signal || p.TimedOut != timedOut {
			t.Errorf("process %+v, want exit code %d, signal %q, timed out %v", p, exitCode, signal, timedOut)
		}
	}
}

// ran checks the metadata of everything that was started on the host.
func ran(t *testing.T, doc *event.ResultDoc) {
	t.Helper()
	m := doc.Metadata
	switch {
	case m.Environment == nil || m.Environment.Resolved != tool.Host || m.Environment.DecidedBy != tool.DecidedBySystem:
		t.Errorf("environment %+v", m.Environment)
	case m.Sandbox == nil || m.Sandbox.Isolation == "":
		t.Errorf("sandbox %+v", m.Sandbox)
	case m.Limits == nil || m.Limits.TimeoutSeconds <= 0 || m.Limits.MemoryBytes <= 0:
		t.Errorf("limits %+v", m.Limits)
	case m.Container != nil:
		t.Errorf("container %+v", m.Container)
	}
	if started := doc.Error.Code != tool.StartFailed; doc.Attempt != 1 || started != (doc.DurationMS > 0) {
		t.Errorf("attempt %d in %v ms, want the first", doc.Attempt, doc.DurationMS)
	}
}

func TestContractCodesOfRequests(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	if err := os.Symlink("/etc", filepath.Join(c.base, "p", "out")); err != nil {
		t.Fatal(err)
	}
	c.provoke(t, []provocation{
		{name: "member of a typo", data: `{"project":"p","tool":"echo","inptu":{}}`, code: tool.InvalidRequest, message: "/data/inptu: unknown member"},
		{name: "type", data: `{"project":"p","tool":5}`, code: tool.InvalidRequest, like: "^/data/tool: "},
		{name: "neither tool nor inline", data: `{"project":"p"}`, code: tool.InvalidRequest, like: "exactly one of tool and inline"},
		{name: "NUL in a path", data: call("p", "echo", `,"input":{"path":"a\u0000b","count":1}`), code: tool.InvalidRequest, like: "/data/input/path: .*NUL"},
		{name: "attribute", attributes: `,"subject":"other"`, data: call("p", "echo", ""), code: tool.InvalidRequest, message: `/subject: "other": expected "echo", the name of the tool`},
		{name: "every fault", attributes: `,"time":"noon"`, data: `{"project":"q","tool":"a b","limits":{"pids":0},"more":1}`, code: tool.InvalidRequest,
			like: `^/data/limits/pids: .*; /data/more: .*; /data/project: .*; /data/tool: .*; /time: `},
		{name: "outputs of a tool that does not write", data: call("p", "off", `,"outputs":["x"]`), code: tool.Forbidden},
		{name: "outputs without writes", data: call("p", "fails", `,"outputs":["x"]`), code: tool.InvalidRequest, like: "capability.writes"},

		{name: "tool", data: call("p", "nobody", ""), code: tool.UnknownTool, message: `tool "nobody" is not in the catalogue`},
		{name: "project", project: "nowhere", data: call("nowhere", "echo", ""), code: tool.UnknownProject, message: `project "nowhere" is not in the catalogue`},

		{name: "project switched off", project: "closed", data: call("closed", "echo", ""), code: tool.Forbidden, message: `project "closed" is not enabled`},
		{name: "tool switched off", data: call("p", "off", ""), code: tool.Forbidden, message: `tool "off" is not enabled`},
		{name: "allow.tools", project: "narrow", data: call("narrow", "fails", ""), code: tool.Forbidden, message: `project "narrow" does not allow tools "fails"`},
		{name: "allow.inline.environments", project: "narrow", data: inline("narrow", "1", ""), code: tool.Forbidden, message: `project "narrow" does not allow inline.environments host`},
		{name: "allow.pools", project: "strict", data: call("strict", "echo", ""), code: tool.Forbidden, message: `project "strict" does not allow pools "default"`},
		{name: "allow.inline.writes", project: "coder", data: `{"project":"coder","inline":{"code":"1","capability":{"writes":true}}}`, code: tool.Forbidden, message: `project "coder" does not allow inline.writes`},
		{name: "allow.inline.network", data: `{"project":"p","inline":{"code":"1","capability":{"network":true}}}`, code: tool.Forbidden, message: `project "p" does not allow inline.network`},
		{name: "environments of the tool", data: call("p", "hostless", ""), code: tool.Forbidden, message: `tool "hostless" does not allow environments host`},

		{name: "source", data: `{"project":"p","inline":{"source":"builtin","code":"1"}}`, code: tool.UnsupportedSource, message: `source "builtin" is not supported: expected "custom"`},
		{name: "no code", data: inline("p", " \n", ""), code: tool.UnsupportedSource, message: `tool "inline" has no code`},

		{name: "every violation", data: call("p", "echo", `,"input":{"count":0,"other":1}`), code: tool.InvalidInput,
			message: "input violates input_schema: /count: 0: expected at least 1; /other: unknown member; /path: missing, but required"},

		{name: "path", data: call("p", "echo", `,"input":{"path":"../../etc/passwd","count":1}`), code: tool.PathEscape, message: `/input/path: "../../etc/passwd" leads out of the sandbox root`},
		{name: "path through a symlink", data: call("p", "echo", `,"input":{"path":"out/passwd","count":1}`), code: tool.PathEscape, message: `/input/path: "out/passwd" leads out of the sandbox root`},
		{name: "output", data: call("p", "writer", `,"outputs":["a","/etc/passwd"]`), code: tool.PathEscape, message: `/outputs/1: "/etc/passwd" leads out of the sandbox root`},
		{name: "protected output", data: call("p", "writer", `,"outputs":["kept/x"]`), code: tool.Forbidden, message: `output "kept/x": project "p" protects kept`},

		{name: "read-only project", project: "frozen", data: call("frozen", "writer", ""), code: tool.ReadOnly, message: `tool "writer" declares capability.writes, and project "frozen" is read-only`},
		{name: "read-only plan", data: call("p", "writer", `,"plan":{"read_only":true}`), code: tool.ReadOnly, message: `tool "writer" declares capability.writes, and the plan is read-only`},
		{name: "outputs in a read-only project", project: "frozen", data: call("frozen", "fails", `,"outputs":["x"]`), code: tool.ReadOnly, message: `outputs are asked for, and project "frozen" is read-only`},

		{name: "container", data: call("p", "fails", `,"tool_env":"CONTAINER"`), code: tool.EnvironmentUnavailable, message: "container execution is not available",
			check: decided(tool.Container, tool.DecidedByTool)},
		{name: "container of the tool", project: "narrow", data: call("narrow", "boxed", ""), code: tool.EnvironmentUnavailable, message: "container execution is not available",
			check: decided(tool.Container, tool.DecidedByTool)},
		{name: "container of the plan", data: call("p", "fails", `,"plan":{"id":"plan-7","execution_environment":"Container"}`), code: tool.EnvironmentUnavailable,
			message: "container execution is not available", check: decided(tool.Container, tool.DecidedByPlan)},
		{name: "no directory", project: "gone", data: inline("gone", "1", ""), code: tool.EnvironmentUnavailable, message: `project "gone": host_sandbox_path is no directory on this worker`},
	})
}

func decided(resolved tool.Environment, by tool.Decider) func(*testing.T, *event.ResultDoc) {
	return func(t *testing.T, doc *event.ResultDoc) {
		t.Helper()
		if e := doc.Metadata.Environment; e == nil || e.Resolved != resolved || e.DecidedBy != by {
			t.Errorf("environment %+v, want %s by %s", e, resolved, by)
		}
	}
}

func TestContractCodesOfExecutions(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	const bytes = 48 << 20
	all := []provocation{
		{name: "timeout of code", data: inline("p", "import time; print('before', flush=True); time.sleep(600)", `,"limits":{"timeout_seconds":1.5}`),
			code: tool.TimedOut, message: "Execution timed out after 1.5s", check: process(137, "SIGKILL", true)},
		{name: "timeout of a command", data: call("p", "sleep", `,"limits":{"timeout_seconds":1.0}`),
			code: tool.TimedOut, message: "Execution timed out after 1s", check: process(137, "SIGKILL", true)},

		{name: "exit status of a command", data: call("p", "fails", ""), code: tool.ExitStatus,
			message: "Execution failed (exit code 3): no such thing", check: process(3, "", false)},
		{name: "exit status of code", data: inline("p", "import sys; print('said'); sys.exit(300)", ""), code: tool.ExitStatus,
			message: "Execution failed (exit code 44): said", check: process(44, "", false)},
		{name: "exception", data: inline("p", "1/0", ""), code: tool.ExitStatus,
			like: `(?s)^Execution failed \(exit code 1\): Traceback .*ZeroDivisionError: division by zero$`, check: process(1, "", false)},
		{name: "signal", data: call("p", "dies", ""), code: tool.ExitStatus, like: `^Execution failed \(exit code 139\): `, check: process(139, "SIGSEGV", false)},

		{name: "no command", data: call("p", "absent", ""), code: tool.StartFailed,
			message: "Execution failed (exit code -1): no-such-command: command not found", check: process(-1, "", false)},
		{name: "variable of env_from", data: call("p", "needy", ""), code: tool.StartFailed,
			like: `^Execution failed \(exit code -1\): .*CONTRACT_NOT_SET`},

		{name: "memory", data: inline("p", "x = bytearray(1 << 29)\nfor i in range(0, len(x), 4096): x[i] = 1", `,"limits":{"memory_bytes":50331648}`),
			code: tool.OutOfMemory, like: `^Execution hit its memory limit of 50331648 bytes \(exit code \d+\)$`, check: limited(func(l tool.Limits) bool { return l.MemoryBytes == bytes })},
		{name: "processes", data: inline("p", "import threading, time\nfor i in range(30): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()", `,"limits":{"pids":8}`),
			code: tool.TooManyProcesses, like: `^Execution hit its limit of processes of 8 \(exit code 1\)$`, check: limited(func(l tool.Limits) bool { return l.PIDs == 8 })},
		{name: "cpu time", data: inline("p", "while True: pass", `,"limits":{"cpu_seconds":0.5}`),
			code: tool.LimitExceeded, like: `^Execution hit its limit cpu_seconds of 0.5 s \(exit code \d+\)$`, check: limited(func(l tool.Limits) bool { return l.CPUSeconds == 0.5 })},
		{name: "size of a file", data: call("p", "big_file", ""), code: tool.LimitExceeded, like: `^Execution hit its limit file_size_bytes of 1048576 bytes \(exit code 153\)$`,
			check: process(153, "SIGXFSZ", false)},

		{name: "output that violates its schema", data: call("p", "typed", ""), code: tool.InvalidOutput,
			like: `^output violates output_schema: .*m.*/n|/n.*m`, check: process(0, "", false)},
		{name: "output that is no JSON", data: call("p", "untyped", ""), code: tool.InvalidOutput, like: `^output is not one strict JSON document`},
		{name: "value without JSON", data: inline("p", "print('said'); result = {1, 2}", ""), code: tool.InvalidOutput, like: `^result has no strict JSON form: `,
			check: func(t *testing.T, doc *event.ResultDoc) {
				if string(doc.Output) != `"said\n"` || doc.Value != nil {
					t.Errorf("output %s, value %s", doc.Output, doc.Value)
				}
			}},

		{name: "output file that is not there", data: call("p", "writer", `,"outputs":["missing"]`), code: tool.SyncFailed, like: `^/outputs/0: `},
		{name: "output file that is a fifo", data: `{"project":"p","inline":{"code":"import os; os.mkfifo('pipe')","capability":{"writes":true}},"outputs":["pipe"]}`,
			code: tool.SyncFailed, like: `^/outputs/0: `},
		{name: "output file that is a link", data: `{"project":"p","inline":{"code":"import os; os.symlink('/etc/passwd', 'link')","capability":{"writes":true}},"outputs":["link"]}`,
			code: tool.SyncFailed, like: `^/outputs/0: `},
	}
	if runtime.GOARCH == "amd64" {
		const foreign = `
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])) # mov $20, %eax; int $0x80; ret: getpid of 32 bits
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
`
		all = append(all, provocation{name: "forbidden call", data: inline("p", foreign, ""), code: tool.SandboxViolation,
			message: "Execution violated its sandbox: a system call of a foreign architecture", check: process(159, "SIGSYS", false)})
	}
	for i := range all {
		check := all[i].check
		all[i].check = func(t *testing.T, doc *event.ResultDoc) {
			t.Helper()
			if doc.Metadata.Process == nil && doc.Error.Code == tool.StartFailed {
				return // it was refused before anything was tried
			}
			ran(t, doc)
			if check != nil {
				check(t, doc)
			}
		}
	}
	c.provoke(t, all)
}

func limited(holds func(tool.Limits) bool) func(*testing.T, *event.ResultDoc) {
	return func(t *testing.T, doc *event.ResultDoc) {
		t.Helper()
		if l := doc.Metadata.Limits; l == nil || !holds(l.Limits) || len(l.Clamped) > 0 {
			t.Errorf("limits in force %+v", l)
		}
	}
}

// provoke sends every request and then looks at every result.
func (c *contract) provoke(t *testing.T, all []provocation) {
	for i := range all {
		p := &all[i]
		if p.project == "" {
			p.project = "p"
		}
		c.request(t, p.project, provocationID(p), p.attributes, p.data)
	}
	for _, p := range all {
		t.Run(string(p.code)+" "+p.name, func(t *testing.T) {
			doc := c.result(t, p.project, provocationID(&p))
			if doc.Error == nil || doc.Error.Code != p.code || doc.Status != p.code.Status() || doc.Success {
				t.Fatalf("status %s, error %+v, want %s\n%s", doc.Status, doc.Error, p.code, doc.Raw)
			}
			if p.message != "" && doc.Error.Message != p.message || !regexp.MustCompile(p.like).MatchString(doc.Error.Message) {
				t.Errorf("message %q, want %q", doc.Error.Message, p.message+p.like)
			}
			if doc.Status == tool.StatusRejected && (doc.Attempt != 0 || doc.Output != nil || doc.Metadata.Process != nil) {
				t.Errorf("it was rejected and ran: %s", doc.Raw)
			}
			if p.check != nil {
				p.check(t, doc)
			}
		})
	}
}

var unnamable = regexp.MustCompile(`[^A-Za-z0-9]+`)

func provocationID(p *provocation) string {
	return unnamable.ReplaceAllString(string(p.code)+" "+p.name, "-")
}
