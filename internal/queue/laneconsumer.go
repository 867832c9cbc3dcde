package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
)

const (
	ackWait           = 30 * time.Second
	inactiveThreshold = 5 * time.Minute
	minAckPending     = 1000
	maxWaiting        = 4096 // cannot be changed later
	// A handle is forgotten before its consumer vanishes for inactivity.
	forgetAfter = inactiveThreshold - time.Minute
	// A message this much older than its consumer may have been delivered by
	// one that vanished for inactivity.
	doubtAfter = inactiveThreshold - 30*time.Second

	createTimeout = 5 * time.Second
	createPause   = time.Second // after a failure
)

// laneConsumer is this worker's handle of a lane's durable consumer. Its lane
// is fetched from once at a time.
type laneConsumer struct {
	used time.Time // guarded by Source.mu

	mu       sync.Mutex
	consumer jetstream.Consumer
	created  time.Time // the consumer, by the server's clock
	replaced bool      // it took the place of one that this worker saw vanish
	highest  uint64    // consumer sequence seen
	pause    time.Time // no attempt to create it before
	err      error     // of the last attempt
}

var errPaused = errors.New("consumer could not be made a moment ago")

// get is the handle of a lane, without a consumer when there is none yet.
func (s *Source) get(lane consume.Lane) *laneConsumer {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[lane]
	if l == nil {
		l = &laneConsumer{}
		s.lanes[lane] = l
	}
	l.used = time.Now()
	return l
}

// forgetIdle drops the handles of lanes that had no work for minutes.
func (s *Source) forgetIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lane, l := range s.lanes {
		if time.Since(l.used) > forgetAfter {
			delete(s.lanes, lane)
		}
	}
}

// open is the lane's consumer, which is made when it is not there.
func (s *Source) open(lane consume.Lane, l *laneConsumer) (jetstream.Consumer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.consumer != nil {
		return l.consumer, nil
	}
	if time.Now().Before(l.pause) {
		return nil, fmt.Errorf("%w: %w", errPaused, l.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), createTimeout)
	defer cancel()
	consumer, err := s.create(ctx, lane)
	if err != nil {
		l.pause, l.err = time.Now().Add(createPause), err
		s.client.log.Warn("make consumer", "consumer", ConsumerName(lane.Pool, lane.Priority, lane.Project), "error", err)
		return nil, err
	}
	l.consumer, l.created, l.highest = consumer, consumer.CachedInfo().Created, 0
	return consumer, nil
}

func (s *Source) create(ctx context.Context, lane consume.Lane) (jetstream.Consumer, error) {
	c := s.client
	stream := c.Names.RequestsStream()
	cfg := jetstream.ConsumerConfig{
		Durable:           ConsumerName(lane.Pool, lane.Priority, lane.Project),
		FilterSubject:     c.Names.RequestSubject(lane.Pool, lane.Priority, lane.Project),
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           ackWait,
		MaxDeliver:        -1, // a message at a limit would stay for ever, undeliverable
		MaxAckPending:     max(minAckPending, 2*s.slots),
		MaxWaiting:        maxWaiting,
		InactiveThreshold: inactiveThreshold,
	}
	consumer, err := c.js.CreateConsumer(ctx, stream, cfg)
	if !errors.Is(err, jetstream.ErrConsumerExists) && apiCode(err) != jetstream.JSErrCodeConsumerExists {
		return consumer, err
	}
	// Made by a worker with another number of slots, or changed by an operator.
	if consumer, err = c.js.Consumer(ctx, stream, cfg.Durable); err != nil {
		return nil, err
	}
	have := consumer.CachedInfo().Config
	if have.FilterSubject != cfg.FilterSubject {
		return nil, fmt.Errorf("consumer %s is of %s, expected %s", cfg.Durable, have.FilterSubject, cfg.FilterSubject)
	}
	if have.AckPolicy != cfg.AckPolicy {
		return nil, fmt.Errorf("consumer %s has the ack policy %s, expected %s", cfg.Durable, have.AckPolicy, cfg.AckPolicy)
	}
	if have.MaxAckPending >= cfg.MaxAckPending && have.MaxDeliver == -1 && have.AckWait >= ackWait {
		return consumer, nil
	}
	cfg.MaxAckPending = max(cfg.MaxAckPending, have.MaxAckPending)
	cfg.MaxWaiting = have.MaxWaiting
	return c.js.UpdateConsumer(ctx, stream, cfg)
}

// vanished notes that the consumer is not there any more: the next one may
// deliver again what this one did.
func (l *laneConsumer) vanished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consumer, l.replaced = nil, true
}

// doubtful says whether the first delivery of a message by its consumer may
// not be its first.
func (l *laneConsumer) doubtful(meta *jetstream.MsgMetadata) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if meta.Sequence.Consumer <= l.highest {
		// Somebody made the consumer anew between two fetches.
		l.replaced, l.created = true, time.Now()
	}
	l.highest = max(l.highest, meta.Sequence.Consumer)
	return l.replaced && meta.Timestamp.Before(l.created) || l.created.Sub(meta.Timestamp) > doubtAfter
}

// olderThan reports whether the handle's consumer was made before t.
func (l *laneConsumer) olderThan(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created.Before(t)
}

// isVanished reports whether err says that a consumer is not there.
func isVanished(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound)
}
