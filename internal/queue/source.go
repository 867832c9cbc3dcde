package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	sweepInterval = time.Second
	sweepTimeout  = 5 * time.Second
)

// Source draws requests from the fleet's stream. It implements
// consume.Source: wake-ups and a sweep every second say which lanes have
// work, and a durable consumer per lane, made on demand, hands it out.
type Source struct {
	client   *Client
	topology Topology
	slots    int

	mu    sync.Mutex
	lanes map[consume.Lane]*laneConsumer
}

// Source makes the source of a worker with this many slots. t.Pools are the
// pools that it serves.
func (c *Client) Source(t Topology, slots int) *Source {
	return &Source{client: c, topology: t, slots: slots, lanes: map[consume.Lane]*laneConsumer{}}
}

// Watch implements consume.Source.
func (s *Source) Watch(ctx context.Context, pools []string, mark func(consume.Lane, bool)) {
	c := s.client
	for _, pool := range pools {
		sub, err := c.nc.Subscribe(c.Names.WakeSubject(pool, "*", "*"), func(m *nats.Msg) {
			if lane, ok := s.lane(m.Subject, "wake"); ok {
				mark(lane, true)
			}
		})
		if err != nil { // only a closed connection refuses
			c.log.Error("subscribe to wake-ups", "pool", pool, "error", err)
			continue
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	for {
		changed := c.change()
		if c.Connected() {
			s.sweep(ctx, pools, mark)
		}
		select {
		case <-ctx.Done():
			return
		// At no fixed time: a worker whose sweeps followed close on another's
		// would find that one's leavings only.
		case <-time.After(sweepInterval*4/5 + rand.N(sweepInterval*2/5)):
		case <-changed:
		}
	}
}

// sweep marks every lane that has messages, whatever wake-up was missed, and
// mends the topology when somebody took it away.
func (s *Source) sweep(ctx context.Context, pools []string, mark func(consume.Lane, bool)) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	c := s.client
	if c.incomplete.Swap(false) {
		s.mend(ctx, "a stream or bucket does not answer")
	}
	for _, pool := range pools {
		info, err := c.streamInfo(ctx, c.Names.RequestsStream(), c.Names.RequestSubject(pool, "*", "*"))
		switch {
		case errors.Is(err, ErrNoTopology):
			s.mend(ctx, "requests stream is gone")
			return
		case err != nil:
			c.log.Debug("sweep", "pool", pool, "error", err)
			continue
		}
		if !slices.Contains(info.Config.Subjects, c.Names.RequestSubject(pool, tool.Normal, "*")) {
			s.mend(ctx, "requests stream takes no requests for pool "+pool)
		}
		for subject := range info.State.Subjects {
			if lane, ok := s.lane(subject, "request"); ok {
				mark(lane, false)
			}
		}
	}
	s.forgetIdle()
}

// mend makes what is missing. Right after a restart of the server everything
// seems to be, and is not.
func (s *Source) mend(ctx context.Context, why string) {
	s.client.log.Warn("looking after the topology", "why", why)
	if _, err := s.client.Ensure(ctx, s.topology); err != nil {
		s.client.log.Error("mend topology", "error", err)
	}
}

func (s *Source) lane(subject, kind string) (consume.Lane, bool) {
	tokens, err := s.client.Names.Split(subject, kind, 3)
	if err != nil || !tool.ValidName(tokens[2]) {
		return consume.Lane{}, false
	}
	return consume.Lane{Pool: tokens[0], Priority: tool.Priority(tokens[1]), Project: tokens[2]}, true
}
