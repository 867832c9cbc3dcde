package consume

import (
	"context"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// live publishes the live events of one attempt. A nil live publishes nothing.
type live struct {
	to Live

	mu     sync.Mutex
	events *event.LiveEvents
	ended  bool
}

type liveKey struct{}

// newLive is nil for requests that did not ask for live events.
func (d *delivery) newLive() *live {
	if !d.request.Stream || d.cfg.Live == nil {
		return nil
	}
	return &live{
		to:     d.cfg.Live,
		events: event.NewLiveEvents(d.request, d.cfg.Prefix, d.cfg.Worker, d.ledger.attempt()),
	}
}

func withLive(ctx context.Context, l *live) context.Context {
	if l == nil {
		return ctx
	}
	return context.WithValue(ctx, liveKey{}, l)
}

// LiveOutput announces that the request of an execution's context is started
// in an environment, and returns what takes its output as it arrives
// (PROTOCOL.md section 7): stream is "stdout" or "stderr", offset counts the
// raw bytes of that stream before p, and p is not kept. It is nil where
// nobody asked for live events.
func LiveOutput(ctx context.Context, env tool.Environment) func(stream string, offset int64, p []byte) {
	l, _ := ctx.Value(liveKey{}).(*live)
	if l == nil {
		return nil
	}
	l.publish(func() []event.Message { return []event.Message{l.events.Started(env)} })
	return func(stream string, offset int64, p []byte) {
		l.publish(func() []event.Message { return l.events.Output(stream, offset, p) })
	}
}

// publish keeps the order of the events. Output that arrives after the end
// of the execution is nobody's.
func (l *live) publish(make func() []event.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	for _, m := range make() {
		l.to.Publish(m)
	}
}

func (l *live) end() {
	if l == nil {
		return
	}
	l.publish(l.events.Flush)
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
}

// publishRetrying announces another attempt after result's.
func (d *delivery) publishRetrying(result *tool.Result, delay time.Duration) {
	if !d.request.Stream || d.cfg.Live == nil {
		return
	}
	events := event.NewLiveEvents(d.request, d.cfg.Prefix, d.cfg.Worker, result.Attempt)
	d.cfg.Live.Publish(events.Retrying(delay, result.Error))
}
