package consume_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

// executor runs requests as a test says.
type executor func(ctx context.Context, r *tool.Request) *tool.Result

func (e executor) Execute(ctx context.Context, r *tool.Request) *tool.Result { return e(ctx, r) }

// succeed is an executor whose tools do nothing.
func succeed(_ context.Context, r *tool.Request) *tool.Result { return resultOf(r, nil) }

func resultOf(r *tool.Request, e *tool.Error) *tool.Result {
	return &tool.Result{RequestID: r.ID, Project: r.Project, PlanID: r.Plan.ID, Tool: r.Name(), Error: e, Output: tool.Text("done " + r.ID)}
}

// rules are switches and bounds that a test can change while workers run.
type rules struct {
	mu     sync.Mutex
	paused map[string]bool // pool, project or tool
	bounds map[string]int  // of projects
	tools  map[string]*tool.Definition
}

func newRules() *rules {
	return &rules{paused: map[string]bool{}, bounds: map[string]int{}, tools: map[string]*tool.Definition{}}
}

func (r *rules) Paused(pool, project, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused["pool "+pool] || r.paused["project "+project] || name != "" && r.paused["tool "+name]
}

func (r *rules) pause(what string, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused[what] = on
}

func (r *rules) ProjectBound(project string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bounds[project]
}

func (r *rules) Tool(_ context.Context, name string) (*tool.Definition, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.tools[name]
	return d, ok
}

// worker is a consumer that runs until it is drained.
type worker struct {
	*consume.Consumer
	client *queue.Client
	stop   context.CancelFunc
	hurry  context.CancelFunc
	done   chan error
}

// start starts a worker of a server's fleet. change may change its parts.
func start(t testing.TB, s *queuetest.Server, run executor, change func(*consume.Config)) *worker {
	t.Helper()
	c := s.Fleet()
	cfg := consume.Config{
		Executor: run, Answers: c.Answers(), DeadLetters: c, Attempts: c.Attempts(), Cancellations: c.Cancellations(),
		Finder: c, Inputs: c.Inputs(), Rules: newRules(), Live: c.Live(),
		Slots: 4, Worker: "test", Prefix: c.Names.Prefix(), DrainTimeout: 10 * time.Second,
		Log: slog.New(slog.DiscardHandler),
	}
	if testing.Verbose() {
		cfg.Log = queuetest.Log(t)
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Source == nil {
		cfg.Source = c.Source(queue.Topology{Names: c.Names, Pools: cfg.Pools}, cfg.Slots)
	}
	consumer, err := consume.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	hurried, hurry := context.WithCancel(context.Background())
	w := &worker{Consumer: consumer, client: c, stop: stop, hurry: hurry, done: make(chan error, 1)}
	go func() { w.done <- consumer.Run(ctx, hurried) }()
	t.Cleanup(func() {
		hurry()
		w.drain(t)
	})
	return w
}

// drain stops the worker and waits for its end.
func (w *worker) drain(t testing.TB) {
	t.Helper()
	w.stop()
	select {
	case err := <-w.done:
		w.done <- nil // for the clean-up
		if err != nil {
			t.Errorf("drain: %v", err)
		}
	case <-time.After(40 * time.Second):
		t.Error("the worker does not end")
	}
}

// planner publishes requests and reads results.
type planner struct {
	t testing.TB
	*queue.Client
}

func newPlanner(t testing.TB, s *queuetest.Server) *planner { return &planner{t, s.Fleet()} }

// request is one that a test can change before it is sent.
func request(project, id string) *tool.Request {
	return &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: "/test", Time: time.Now(), CorrelationID: id},
		Pool:     tool.DefaultPool, Priority: tool.Normal, Project: project,
		Inline: &tool.Inline{Code: "pass", Source: "custom"}, Input: json.RawMessage("{}"),
	}
}

func (p *planner) send(r *tool.Request) {
	p.t.Helper()
	m, err := event.EncodeRequest(r, p.Names.Prefix())
	if err == nil {
		_, err = p.Publish(p.ctx(), r.Project, r.ID, m)
	}
	if err != nil {
		p.t.Errorf("send %s: %v", r.ID, err)
	}
}

// sendAll sends n requests of a project, without waiting for each.
func (p *planner) sendAll(n int, make func(i int) *tool.Request) {
	p.t.Helper()
	for i := range n {
		r := make(i)
		m, err := event.EncodeRequest(r, p.Names.Prefix())
		if err != nil {
			p.t.Fatal(err)
		}
		msg := natsMsg(m, queue.RequestMsgID(r.Project, r.ID))
		if _, err := p.JetStream().PublishMsgAsync(msg); err != nil {
			p.t.Fatal(err)
		}
		if i%1000 == 999 || i == n-1 {
			<-p.JetStream().PublishAsyncComplete()
		}
	}
}

func (p *planner) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	p.t.Cleanup(cancel)
	return ctx
}

// result waits for the result of a request.
func (p *planner) result(project, id string) *event.ResultDoc {
	p.t.Helper()
	m, err := p.WaitResult(p.ctx(), project, id)
	if err != nil {
		p.t.Fatalf("result of %s: %v", id, err)
	}
	doc, err := event.DecodeResult(m)
	if err != nil {
		p.t.Fatalf("result of %s: %v", id, err)
	}
	return doc
}

// messages counts what a stream holds, as soon as the server can be asked.
func (p *planner) messages(stream string) uint64 {
	p.t.Helper()
	var n uint64
	queuetest.Until(p.t, "the server counts its messages", func() bool {
		s, err := p.JetStream().Stream(p.ctx(), stream)
		if err == nil {
			n = s.CachedInfo().State.Msgs
		}
		return err == nil
	})
	return n
}

// empty waits until every request is settled.
func (p *planner) empty() {
	p.t.Helper()
	queuetest.Until(p.t, "the queue is empty", func() bool { return p.messages("TOOL_REQUESTS") == 0 })
}

func rid(i int) string { return fmt.Sprintf("r-%d", i) }
