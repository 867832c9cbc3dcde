package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestStatus(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	publish(t, c, 5)
	if _, err := c.Publish(t.Context(), "q", "a", message("tools.request.default.high.q", "{}")); err != nil {
		t.Fatal(err)
	}
	take(t, c.Source(queue.Topology{Names: c.Names}, 4), laneP, 2, 0)
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Lanes) != 2 || len(status.Streams) != 9 || len(status.Workers) != 0 {
		t.Fatalf("%+v", status)
	}
	high, normal := status.Lanes[0], status.Lanes[1]
	if high.Priority != tool.High || high.Project != "q" || high.Waiting != 1 || high.Running != 0 || high.Consumer != "" {
		t.Errorf("%+v", high)
	}
	if normal.Waiting != 3 || normal.Running != 2 || normal.Consumer != "default-normal-p" || time.Since(normal.Oldest) > time.Minute {
		t.Errorf("%+v", normal)
	}
	if n, err := c.Purge(t.Context(), "p"); err != nil || n != 5 {
		t.Errorf("purged %d, %v", n, err)
	}
	if status, err = c.Status(t.Context()); err != nil || status.Lanes[0].Waiting != 1 || status.Lanes[1].Waiting+status.Lanes[1].Running != 0 {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := c.Purge(t.Context(), "*"); err == nil {
		t.Error("a wildcard is no project")
	}
}

func TestStatusWithoutATopology(t *testing.T) {
	s := queuetest.Start(t)
	if _, err := s.Connect(queue.Options{}).Status(t.Context()); !errors.Is(err, queue.ErrNoTopology) {
		t.Errorf("%v", err)
	}
}

func TestLiveEventsReachTheirStream(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	sub, err := c.Conn().SubscribeSync("tools.event.p.*")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	c.Live().Publish(event.Message{Subject: "tools.event.p.a", Data: []byte("x")})
	if m, err := sub.NextMsg(10 * time.Second); err != nil || string(m.Data) != "x" {
		t.Errorf("%v, %v", m, err)
	}
	queuetest.Until(t, "the stream has it", func() bool {
		stream, err := c.JetStream().Stream(t.Context(), "TOOL_EVENTS")
		return err == nil && stream.CachedInfo().State.Msgs == 1
	})
}
