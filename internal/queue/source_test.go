package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

var laneP = consume.Lane{Pool: "default", Priority: tool.Normal, Project: "p"}

// take fetches at most n messages of a lane.
func take(t *testing.T, s *queue.Source, lane consume.Lane, n int, wait time.Duration) []consume.Message {
	t.Helper()
	var got []consume.Message
	count, err := s.Fetch(lane, n, wait, func(m consume.Message) { got = append(got, m) })
	if err != nil || count != len(got) {
		t.Fatalf("%d messages, %v", count, err)
	}
	return got
}

func publish(t *testing.T, c *queue.Client, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Publish(t.Context(), "p", fmt.Sprint(i), message(lane, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFetchTakesNoMoreThanAsked(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	source := c.Source(queue.Topology{Names: c.Names}, 4)
	if got := take(t, source, laneP, 3, 0); len(got) != 0 {
		t.Fatalf("%d messages of an empty lane", len(got))
	}
	publish(t, c, 5)
	got := take(t, source, laneP, 3, 0)
	if len(got) != 3 || string(got[2].Event().Data) != "2" {
		t.Fatalf("%d messages", len(got))
	}
	d := got[0].Delivery()
	if d.Sequence != 1 || d.Count != 1 || d.Doubtful || time.Since(d.Stored).Abs() > time.Minute {
		t.Errorf("%+v", d)
	}
	if rest := take(t, source, laneP, 10, 0); len(rest) != 2 {
		t.Errorf("%d left", len(rest))
	}
	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got {
		if err := m.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 2 {
		t.Errorf("%d messages are left after three were acknowledged, %v", info.State.Msgs, err)
	}
}

func TestConsumerOfALane(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	take(t, c.Source(queue.Topology{Names: c.Names}, 4), laneP, 1, 0)
	take(t, c.Source(queue.Topology{Names: c.Names}, 2000), laneP, 1, 0) // a larger worker
	take(t, c.Source(queue.Topology{Names: c.Names}, 8), laneP, 1, 0)
	consumer, err := c.JetStream().Consumer(t.Context(), "TOOL_REQUESTS", "default-normal-p")
	if err != nil {
		t.Fatal(err)
	}
	cfg := consumer.CachedInfo().Config
	if cfg.FilterSubject != lane || cfg.AckPolicy != jetstream.AckExplicitPolicy || cfg.AckWait != 30*time.Second || cfg.MaxDeliver != -1 ||
		cfg.MaxAckPending != 4000 || cfg.MaxWaiting != 4096 || cfg.InactiveThreshold != 5*time.Minute || len(cfg.BackOff) != 0 {
		t.Errorf("%+v", cfg)
	}
}

func TestNakAndTerm(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	source := c.Source(queue.Topology{Names: c.Names}, 4)
	publish(t, c, 2)
	got := take(t, source, laneP, 2, 0)
	if err := got[0].Nak(0); err != nil {
		t.Fatal(err)
	}
	again := take(t, source, laneP, 1, 5*time.Second)
	if len(again) != 1 || again[0].Delivery().Count != 2 || again[0].Delivery().Sequence != 1 {
		t.Fatalf("given back: %+v", again)
	}
	if err := again[0].Nak(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if early := take(t, source, laneP, 1, 0); len(early) != 0 {
		t.Fatal("given back for later, and delivered at once")
	}
	if err := got[1].Term(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again = take(t, source, laneP, 1, 5*time.Second); len(again) != 1 || again[0].Delivery().Count != 3 {
		t.Fatalf("given back for later: %+v", again)
	}
	if err := again[0].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	queuetest.Until(t, "the stream is empty", func() bool { return requests(t, c) == 0 })
}

func requests(t *testing.T, c *queue.Client) uint64 {
	t.Helper()
	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func TestAckOutlastsARestart(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	source := c.Source(queue.Topology{Names: c.Names}, 4)
	publish(t, c, 1)
	m := take(t, source, laneP, 1, 0)[0]
	s.Stop()
	acked := make(chan error, 1)
	go func() { acked <- m.Ack(context.Background()) }()
	s.Start()
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
	queuetest.Until(t, "the request is gone", func() bool { return requests(t, c) == 0 })
}

// TestConsumerDeletedUnderTheWorker: its successor delivers again what it
// did, as if for the first time.
func TestConsumerDeletedUnderTheWorker(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	source := c.Source(queue.Topology{Names: c.Names}, 4)
	publish(t, c, 3)
	held := take(t, source, laneP, 1, 0)[0]
	if err := c.JetStream().DeleteConsumer(t.Context(), "TOOL_REQUESTS", "default-normal-p"); err != nil {
		t.Fatal(err)
	}
	if err := held.Ack(t.Context()); !errors.Is(err, consume.ErrGone) {
		t.Errorf("acknowledged to nobody: %v", err)
	}
	got := take(t, source, laneP, 3, 0)
	if len(got) != 3 {
		t.Fatalf("%d messages from the new consumer", len(got))
	}
	for _, m := range got {
		if d := m.Delivery(); d.Count != 1 || !d.Doubtful {
			t.Errorf("%+v: expected doubts", d)
		}
	}
	if _, err := c.Publish(t.Context(), "p", "later", message(lane, "later")); err != nil {
		t.Fatal(err)
	}
	if fresh := take(t, source, laneP, 1, 5*time.Second); len(fresh) != 1 || fresh[0].Delivery().Doubtful {
		t.Errorf("a request from after the change is doubted")
	}
}

// TestConsumerMadeAnewBySomebodyElse: the old delivery's acknowledgement finds
// a consumer that knows nothing of it.
func TestConsumerMadeAnewBySomebodyElse(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	source, other := c.Source(queue.Topology{Names: c.Names}, 4), c.Source(queue.Topology{Names: c.Names}, 4)
	publish(t, c, 2)
	held := take(t, source, laneP, 2, 0)[1]
	if err := c.JetStream().DeleteConsumer(t.Context(), "TOOL_REQUESTS", "default-normal-p"); err != nil {
		t.Fatal(err)
	}
	take(t, other, laneP, 1, 0) // makes the consumer, and takes the first message only
	if err := held.Ack(t.Context()); !errors.Is(err, consume.ErrGone) {
		t.Errorf("acknowledged to a consumer that did not deliver it: %v", err)
	}
	if got := take(t, source, laneP, 1, 5*time.Second); len(got) != 1 || !got[0].Delivery().Doubtful {
		t.Errorf("%d messages, expected the doubtful one", len(got))
	}
}

func TestConsumerThatCannotBeMadeIsNotTriedAllTheTime(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Connect(queue.Options{})
	source := c.Source(queue.Topology{Names: c.Names}, 4)
	for range 3 {
		if n, err := source.Fetch(laneP, 1, 0, func(consume.Message) {}); err == nil || n != 0 {
			t.Fatalf("%d messages without a stream, %v", n, err)
		}
	}
}

// marks collects what a source's watch says.
type marks struct {
	mu    sync.Mutex
	woken map[consume.Lane]int
	swept map[consume.Lane]int
}

func (m *marks) mark(lane consume.Lane, woken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if woken {
		m.woken[lane]++
	} else {
		m.swept[lane]++
	}
}

func (m *marks) count(lane consume.Lane) (woken, swept int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.woken[lane], m.swept[lane]
}

func watch(t *testing.T, source *queue.Source, pools ...string) *marks {
	t.Helper()
	m := &marks{woken: map[consume.Lane]int{}, swept: map[consume.Lane]int{}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); source.Watch(ctx, pools, m.mark) }()
	t.Cleanup(func() { stop(); <-ended })
	return m
}

func TestWatch(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet("default", "gpu", "other")
	publish(t, c, 1)
	m := watch(t, c.Source(queue.Topology{Names: c.Names}, 4), "default", "gpu")
	queuetest.Until(t, "the sweep sees what was there before", func() bool { _, swept := m.count(laneP); return swept > 0 })
	gpu := consume.Lane{Pool: "gpu", Priority: tool.High, Project: "q"}
	for _, pool := range []string{"other", "gpu"} {
		if _, err := c.Publish(t.Context(), "q", pool, message("tools.request."+pool+".high.q", "x")); err != nil {
			t.Fatal(err)
		}
	}
	queuetest.Until(t, "the wake-up arrives", func() bool { woken, _ := m.count(gpu); return woken == 1 })
	_, before := m.count(laneP)
	queuetest.Until(t, "it sweeps again and again", func() bool { _, swept := m.count(laneP); return swept > before+1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	for lane := range m.woken {
		if lane.Pool == "other" {
			t.Error("a pool that is not served is marked")
		}
	}
}

func TestWatchMendsTheTopology(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	m := watch(t, c.Source(queue.Topology{Names: c.Names}, 4), "default")
	if err := c.JetStream().DeleteStream(t.Context(), "TOOL_REQUESTS"); err != nil {
		t.Fatal(err)
	}
	queuetest.Until(t, "the stream is there again", func() bool {
		_, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
		return err == nil
	})
	publish(t, c, 1)
	queuetest.Until(t, "the new stream's requests are seen", func() bool { woken, _ := m.count(laneP); return woken > 0 })
}
