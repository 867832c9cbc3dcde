package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

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
		Setup: func(env *testscript.Env) error {
			f, err := startFleet(filepath.Join(env.WorkDir, queue.DefaultDataDir))
			if err != nil {
				return err
			}
			env.Defer(f.stop)
			env.Setenv("TOOLWORKER_NATS_URL", f.server.URL())
			return nil
		},
	})
}

// fleet is an embedded server, and somebody who answers requests by what
// their tools are called, so that tests of the publisher need no sandbox.
type fleet struct {
	server *queue.Embedded
	client *queue.Client
	cancel context.CancelFunc
	ended  chan struct{}
}

func startFleet(dir string) (*fleet, error) {
	server, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleet{server: server, cancel: cancel, ended: make(chan struct{})}
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
	if ref, ok := err.(*event.Reference); ok {
		data, fetchErr := f.client.Inputs().Get(ctx, ref.Project, ref.Object, ref.SHA256)
		if fetchErr != nil {
			return
		}
		r, err = ref.Decode(data)
	}
	if r == nil || r.Tool == "silent" {
		return
	}
	res := &tool.Result{
		RequestID: r.ID, Project: r.Project, PlanID: r.Plan.ID, Tool: r.Name(), Worker: "fleet-1", Attempt: 1,
		Duration: 1500 * time.Microsecond,
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
