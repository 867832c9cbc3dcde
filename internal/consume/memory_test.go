package consume

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// memory is a queue with the habits of JetStream, in memory: what is not
// settled within the ack wait comes again, so does what is given back, and
// nobody is told of either. With testing/synctest hours of it are instants.
type memory struct {
	t *testing.T

	mu       sync.Mutex
	sequence uint64
	ready    map[Lane][]*memMessage
	unsolved map[uint64]*memMessage
	news     chan struct{} // closed and replaced when something becomes ready
	mark     func(Lane, bool)

	results   map[requestKey]event.Message
	records   map[requestKey]Record
	revisions map[requestKey]uint64
	cancelled map[requestKey]bool
	heard     func(project, id string)
	dead      []DeadLetter
	live      []event.Message
	naks      []time.Duration
	beats     int
	gone      bool  // acknowledgements find no consumer
	storeErr  error // Store fails for good with it
	failing   int   // so many encodings fail
}

func newMemory(t *testing.T) *memory {
	return &memory{
		t: t, ready: map[Lane][]*memMessage{}, unsolved: map[uint64]*memMessage{}, news: make(chan struct{}),
		results: map[requestKey]event.Message{}, records: map[requestKey]Record{}, revisions: map[requestKey]uint64{},
		cancelled: map[requestKey]bool{},
	}
}

const memAckWait = 30 * time.Second

type memMessage struct {
	q     *memory
	lane  Lane
	event event.Message
	info  Delivery
	timer *time.Timer
}

func (q *memory) send(r *tool.Request) {
	q.t.Helper()
	m, err := event.EncodeRequest(r, "tools")
	if err != nil {
		q.t.Fatal(err)
	}
	q.publish(Lane{r.Pool, r.Priority, r.Project}, m)
}

func (q *memory) publish(lane Lane, m event.Message) {
	q.mu.Lock()
	q.sequence++
	msg := &memMessage{q: q, lane: lane, event: m, info: Delivery{Sequence: q.sequence, Stored: time.Now()}}
	q.unsolved[msg.info.Sequence] = msg
	q.offer(msg)
	mark := q.mark
	q.mu.Unlock()
	if mark != nil {
		mark(lane, true)
	}
}

func (q *memory) offer(m *memMessage) {
	q.ready[m.lane] = append(q.ready[m.lane], m)
	close(q.news)
	q.news = make(chan struct{})
}

// Watch implements Source.
func (q *memory) Watch(ctx context.Context, _ []string, mark func(Lane, bool)) {
	q.mu.Lock()
	q.mark = mark
	q.mu.Unlock()
	for {
		q.mu.Lock()
		lanes := map[Lane]bool{}
		for _, m := range q.unsolved {
			lanes[m.lane] = true
		}
		q.mu.Unlock()
		for lane := range lanes {
			mark(lane, false)
		}
		select {
		case <-ctx.Done():
			q.mu.Lock()
			q.mark = nil
			q.mu.Unlock()
			return
		case <-time.After(time.Second*4/5 + rand.N(time.Second*2/5)):
		}
	}
}

// Fetch implements Source.
func (q *memory) Fetch(lane Lane, n int, wait time.Duration, deliver func(Message)) (int, error) {
	timeout := time.After(wait)
	for {
		q.mu.Lock()
		got := min(n, len(q.ready[lane]))
		taken := q.ready[lane][:got:got]
		q.ready[lane] = q.ready[lane][got:]
		for _, m := range taken {
			m.info.Count++
			m.timer = time.AfterFunc(memAckWait, func() { q.again(m) })
		}
		news := q.news
		q.mu.Unlock()
		for _, m := range taken {
			deliver(&memDelivery{memMessage: m, info: m.info})
		}
		if got > 0 || wait == 0 {
			return got, nil
		}
		select {
		case <-timeout:
			return 0, nil
		case <-news:
		}
	}
}

func (q *memory) again(m *memMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.unsolved[m.info.Sequence]; ok {
		q.offer(m)
	}
}

type memDelivery struct {
	*memMessage
	info Delivery
	lost bool // its worker is dead: nobody hears what it says
}

func (d *memDelivery) Event() event.Message { return d.event }
func (d *memDelivery) Delivery() Delivery   { return d.info }

func (d *memDelivery) InProgress() error {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	d.q.beats++
	if !d.lost && d.timer.Stop() {
		d.timer.Reset(memAckWait)
	}
	return nil
}

func (d *memDelivery) Ack(context.Context) error {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	if d.q.gone {
		return ErrGone
	}
	if !d.lost {
		d.timer.Stop()
		delete(d.q.unsolved, d.info.Sequence)
	}
	return nil
}

func (d *memDelivery) Term(ctx context.Context) error { return d.Ack(ctx) }

func (d *memDelivery) Nak(delay time.Duration) error {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	d.q.naks = append(d.q.naks, delay)
	if !d.lost {
		d.timer.Stop()
		d.timer = time.AfterFunc(delay, func() { d.q.again(d.memMessage) })
	}
	return nil
}

// Encode, Store and Answered implement Answers.
func (q *memory) Encode(ctx context.Context, r *tool.Result, req *tool.Request) (event.Message, error) {
	q.mu.Lock()
	failing := q.failing > 0
	q.failing--
	q.mu.Unlock()
	if failing {
		return event.Message{}, context.DeadlineExceeded
	}
	return event.EncodeResult(ctx, r, req, nil, "tools")
}

func (q *memory) Store(_ context.Context, project, id string, m event.Message) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.storeErr; err != nil {
		q.storeErr = nil
		return false, err
	}
	k := requestKey{project, id}
	if _, ok := q.results[k]; ok {
		return false, nil
	}
	q.results[k] = m
	return true, nil
}

func (q *memory) Answered(_ context.Context, project, id string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.results[requestKey{project, id}]
	return ok, nil
}

// PutDeadLetter implements DeadLetters.
func (q *memory) PutDeadLetter(_ context.Context, d DeadLetter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = append(q.dead, d)
	return nil
}

// Load and Save implement Attempts.
func (q *memory) Load(_ context.Context, project, id string) (Record, uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := requestKey{project, id}
	return q.records[k], q.revisions[k], nil
}

func (q *memory) Save(_ context.Context, project, id string, rec Record, rev uint64) (uint64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := requestKey{project, id}
	if q.revisions[k] != rev {
		return 0, ErrConflict
	}
	q.records[k], q.revisions[k] = rec, rev+1
	return rev + 1, nil
}

// cancel and the following implement Cancellations.
func (q *memory) cancel(project, id string) {
	q.mu.Lock()
	q.cancelled[requestKey{project, id}] = true
	heard := q.heard
	q.mu.Unlock()
	if heard != nil {
		heard(project, id)
	}
}

func (q *memory) Run(ctx context.Context, heard func(project, id string)) error {
	q.mu.Lock()
	q.heard = heard
	known := maps.Clone(q.cancelled)
	q.mu.Unlock()
	for k := range known {
		heard(k.project, k.id)
	}
	<-ctx.Done()
	return nil
}

func (q *memory) Cancelled(project, id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.cancelled[requestKey{project, id}]
}

func (q *memory) Forget(string, string) {}

// Find implements Finder.
func (q *memory) Find(_ context.Context, project string, ids map[string]struct{}, found func(string, Queued)) error {
	q.mu.Lock()
	var all []*memMessage
	for _, m := range q.unsolved {
		all = append(all, m)
	}
	q.mu.Unlock()
	for _, m := range all {
		r, _ := event.DecodeRequest(m.event, "tools")
		if r == nil || r.Project != project {
			continue
		}
		if _, ok := ids[r.ID]; ok {
			found(r.ID, Queued{Request: m.event, Lane: m.lane, Remove: func(context.Context) error {
				q.mu.Lock()
				defer q.mu.Unlock()
				delete(q.unsolved, m.info.Sequence)
				q.ready[m.lane] = slices.DeleteFunc(q.ready[m.lane], func(o *memMessage) bool { return o == m })
				return nil
			}})
		}
	}
	return nil
}

// Publish implements Live.
func (q *memory) Publish(m event.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.live = append(q.live, m)
}

// waiting counts the requests that are not settled.
func (q *memory) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.unsolved)
}

// result is the stored result of a request of project p; nil when there is none.
func (q *memory) result(id string) *event.ResultDoc {
	q.t.Helper()
	q.mu.Lock()
	m, ok := q.results[requestKey{"p", id}]
	q.mu.Unlock()
	if !ok {
		return nil
	}
	doc, err := event.DecodeResult(m)
	if err != nil {
		q.t.Fatal(err)
	}
	return doc
}

// fakeRules implement Rules.
type fakeRules struct {
	mu     sync.Mutex
	paused string
	bound  int
	tools  map[string]*tool.Definition
}

func (r *fakeRules) Paused(pool, project, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused != "" && (r.paused == pool || r.paused == project || r.paused == name)
}

func (r *fakeRules) pause(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = what
}

func (r *fakeRules) ProjectBound(string) int { return r.bound }

func (r *fakeRules) Tool(_ context.Context, name string) (*tool.Definition, bool) {
	d, ok := r.tools[name]
	return d, ok
}

type executorFunc func(context.Context, *tool.Request) *tool.Result

func (f executorFunc) Execute(ctx context.Context, r *tool.Request) *tool.Result { return f(ctx, r) }

// config makes a worker's configuration on the queue.
func (q *memory) config(run executorFunc) Config {
	return Config{
		Source: q, Executor: run, Answers: q, DeadLetters: q, Attempts: q, Cancellations: q, Finder: q,
		Inputs: noInputs{}, Rules: &fakeRules{}, Live: q, Slots: 2, Worker: "w", Prefix: "tools",
		Log: slog.New(slog.DiscardHandler),
	}
}

type noInputs struct{}

func (noInputs) Fetch(_ context.Context, ref *event.Reference) ([]byte, error) {
	return nil, ref.Refuse("not found")
}

// serve runs a worker until the returned function drains it.
func (q *memory) serve(cfg Config) (c *Consumer, drain func() error) {
	q.t.Helper()
	c, err := New(cfg)
	if err != nil {
		q.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, nil) }()
	synctest.Wait()
	return c, func() error {
		stop()
		return <-done
	}
}

// bubble runs f with a queue in virtual time.
func bubble(t *testing.T, f func(t *testing.T, q *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newMemory(t)) })
}

// after lets virtual time pass and everything settle.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func newRequest(id string) *tool.Request {
	return &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: "/test", Time: time.Now(), CorrelationID: id},
		Pool:     tool.DefaultPool, Priority: tool.Normal, Project: "p",
		Inline: &tool.Inline{Code: "pass", Source: "custom"}, Input: json.RawMessage("{}"),
	}
}

func done(r *tool.Request) *tool.Result {
	return &tool.Result{RequestID: r.ID, Project: r.Project, Tool: r.Name(), Output: tool.Text("done")}
}

func failed(r *tool.Request, code tool.Code) *tool.Result {
	res := done(r)
	res.Error = tool.Errorf(code, "it went wrong")
	return res
}
