package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"publisher": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			f, err := startFleet(filepath.Join(env.WorkDir, queue.DefaultDataDir))
			if err != nil {
				return err
			}
			env.Defer(f.stop)
			env.Setenv("TOOLWORKER_NATS_URL", f.server.URL())
			return writeLarge(env.WorkDir)
		},
	})
}

// writeLarge writes requests that do not fit into a message.
func writeLarge(dir string) error {
	input := `{"text":"` + strings.Repeat("0123456", 100_000) + `"}`
	data := `{"project":"demo","tool":"size","input":` + input + `}`
	for name, text := range map[string]string{
		"big.json":      input,
		"bigdata.json":  data,
		"bigevent.json": `{"specversion":"1.0","id":"big-1","source":"/planner","type":"dev.toolworker.request.v1","data":` + data + `}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// exits runs a command and checks its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, wanted %s; standard error: %s", code, args[0], ts.ReadFile("stderr"))
	}
}

// fleet is an embedded server, and somebody who answers requests by what
// their tools are called, so that tests of the publisher need no sandbox.
type fleet struct {
	server *queue.Embedded
	client *queue.Client
	cancel context.CancelFunc
	ended  chan struct{}
	silent chan string // ids of requests that get no result
}

func startFleet(dir string) (*fleet, error) {
	server, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleet{server: server, cancel: cancel, ended: make(chan struct{}), silent: make(chan string, 100)}
	if err := f.serve(ctx); err != nil {
		f.cancel()
		server.Shutdown()
		return nil, err
	}
	return f, nil
}

func (f *fleet) stop() {
	f.cancel()
	<-f.ended
	f.client.Close()
	f.server.Shutdown()
}

func (f *fleet) serve(ctx context.Context) error {
	var err error
	if f.client, err = queue.Connect(ctx, f.server.Options(queue.Options{Name: "fleet"})); err != nil {
		return err
	}
	if _, err := f.client.Ensure(ctx, queue.Topology{}); err != nil {
		return err
	}
	consumer, err := f.client.JetStream().CreateConsumer(ctx, f.client.Names.RequestsStream(), jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, messages.Stop)
	go func() {
		defer close(f.ended)
		for {
			m, err := messages.Next()
			if err != nil {
				return
			}
			f.answer(ctx, event.Message{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()})
			_ = m.Ack()
		}
	}()
	return nil
}

// answer stores the result of one request; "silent" never gets one.
func (f *fleet) answer(ctx context.Context, m event.Message) {
	r, err := event.DecodeRequest(m, f.client.Names.Prefix())
	var ref *event.Reference
	if errors.As(err, &ref) {
		data, fetchErr := f.client.Inputs().Get(ctx, ref.Project, ref.Object, ref.SHA256)
		if fetchErr != nil {
			return
		}
		r, err = ref.Decode(data)
	}
	switch {
	case r == nil:
		return
	case r.Tool == "silent":
		f.silent <- r.ID
		return
	}
	res := &tool.Result{
		RequestID: r.ID, Project: r.Project, PlanID: r.Plan.ID, Tool: r.Name(), Worker: "fleet-1", Attempt: 1,
		Duration: 1500 * time.Microsecond,
	}
	if r.Tool == "put_aside" {
		_ = f.client.PutDeadLetter(ctx, consume.DeadLetter{
			Request: m, Lane: consume.Lane{Pool: r.Pool, Priority: r.Priority, Project: r.Project},
			Sequence: 1, Deliveries: 5, Code: tool.Internal, Reason: "five times it failed",
		})
		r.Tool = "size"
	}
	if err != nil {
		res.Error = tool.AsError(err)
	} else {
		f.run(ctx, r, res)
	}
	out, err := event.EncodeResult(ctx, res, r, f.client.Payloads(), f.client.Names.Prefix())
	if err == nil {
		_, err = f.client.StoreResult(ctx, r.Project, r.ID, out)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
	}
}

func (f *fleet) run(ctx context.Context, r *tool.Request, res *tool.Result) {
	res.Metadata = tool.Metadata{
		Environment: &tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedBySystem},
		Sandbox:     &tool.SandboxMetadata{Isolation: tool.IsolationFull, Mechanisms: []string{"user"}, Missing: []string{}},
	}
	if r.Inline != nil {
		res.Output = tool.Text("ran " + r.Name() + ": " + r.Inline.Code + "\n")
		res.Value = tool.Document([]byte(`{"a":[1,2]}`))
		return
	}
	switch r.Tool {
	case "echo":
		res.Output, res.Stdout, res.Stderr = tool.Document(r.Input), tool.Text(string(r.Input)), tool.Text("a word aside\n")
	case "size":
		res.Output = tool.Text(fmt.Sprintf("%d\n", len(r.Input)))
	case "write":
		res.Output = tool.Text("")
		res.Files = []tool.File{{HostPath: "/srv/out.txt", SizeBytes: 3, SHA256: strings.Repeat("ab", 32)}}
		res.Changes = []tool.Change{{Path: "out.txt", Change: tool.Created}}
	case "large":
		text := bytes.Repeat([]byte("0123456789abcde\n"), 128<<10)
		res.Output, res.Stdout, res.Truncated = &tool.Payload{Content: tool.Bytes(text)}, tool.Text("x"), true
	case "large_document":
		res.Output = tool.Document([]byte(`{"n":[` + string(bytes.Repeat([]byte("1234567,"), 128<<10)) + `9007199254740993]}`))
	case "fail":
		res.Output, res.Stderr = tool.Text("half\n"), tool.Text("no such thing\n")
		res.Error = tool.Errorf(tool.ExitStatus, "Execution failed (exit code 3): no such thing")
	case "live":
		events := event.NewLiveEvents(r, f.client.Names.Prefix(), res.Worker, 1)
		messages := append([]event.Message{events.Started(tool.Host)}, events.Output("stdout", 0, []byte("one\n"))...)
		messages = append(messages, events.Retrying(time.Second, tool.Errorf(tool.TimedOut, "late")))
		for _, m := range append(messages, events.Output("stderr", 0, []byte("two\n"))...) {
			_ = f.client.Conn().Publish(m.Subject, m.Data)
		}
		res.Output = tool.Text("one\n")
	default:
		res.Metadata = tool.Metadata{}
		res.Attempt = 0
		res.Error = tool.Errorf(tool.UnknownTool, "tool %q is not in the catalogue", r.Tool)
	}
}
