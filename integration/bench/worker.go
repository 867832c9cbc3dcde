package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// backend is an in-process executor: what it does is all that a tool costs.
type backend func(ctx context.Context, r *tool.Request)

// Execute implements consume.Executor.
func (b backend) Execute(ctx context.Context, r *tool.Request) *tool.Result {
	b(ctx, r)
	return &tool.Result{
		RequestID: r.ID, Project: r.Project, Tool: r.Name(), Attempt: 1,
		Output: tool.Text(""), Stdout: tool.Text(""), Stderr: tool.Text(""),
	}
}

// rules is a catalogue that neither holds nor bounds anything.
type rules struct{}

func (rules) Paused(_, _, _ string) bool { return false }
func (rules) ProjectBound(string) int    { return 0 }
func (rules) Tool(context.Context, string) (*tool.Definition, bool) {
	return &tool.Definition{}, true
}

// serve runs a consumer with the real adapters until the returned function is called.
func serve(ctx context.Context, c *queue.Client, slots int, exec consume.Executor) (stop func() error, err error) {
	consumer, err := consume.New(consume.Config{
		Source: c.Source(queue.Topology{}, slots), Executor: exec, Answers: c.Answers(), DeadLetters: c,
		Attempts: c.Attempts(), Cancellations: c.Cancellations(), Finder: c, Inputs: c.Inputs(),
		Rules: rules{}, Slots: slots, Worker: "bench", Prefix: c.Names.Prefix(),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- consumer.Run(ctx, nil) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// request is a request event of about 1 KiB.
func request(project string) (*nats.Msg, string, error) {
	id := uuid.Must(uuid.NewV7()).String()
	r := &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: "/bench", Time: time.Now().UTC(), CorrelationID: id},
		Pool:     tool.DefaultPool, Priority: tool.Normal, Project: project, Tool: "noop",
		Input: fmt.Appendf(nil, `{"text":%q}`, filler[:512]),
	}
	m, err := event.EncodeRequest(r, queue.DefaultSubjectPrefix)
	if err != nil {
		return nil, "", err
	}
	h := nats.Header{}
	for k, v := range m.Header {
		h[k] = v
	}
	h.Set(jetstream.MsgIDHeader, queue.RequestMsgID(project, id))
	return &nats.Msg{Subject: m.Subject, Header: h, Data: m.Data}, id, nil
}

// filler is text of the size that inputs have.
var filler = func() string {
	b := make([]byte, 1024)
	for i := range b {
		b[i] = "the quick brown fox jumps over a lazy dog "[i%42]
	}
	return string(b)
}()

// enqueue publishes n requests of a project.
func enqueue(ctx context.Context, c *queue.Client, project string, n int) error {
	var failed error
	err := fill(ctx, c.JetStream(), n, func(int) *nats.Msg {
		m, _, err := request(project)
		if err != nil {
			failed = err
			return &nats.Msg{Subject: "unused"}
		}
		return m
	})
	if failed != nil {
		return failed
	}
	return err
}
