package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// raw is the floor: the least that any worker with the same promises must
// do. Slots reserved, then fetch; a synchronous publish with a message id;
// a double ack. No decoding, no lanes, no heartbeats.
type raw struct {
	js   jetstream.JetStream
	cons jetstream.Consumer
	body []byte
}

const (
	rawRequests = "RAW_REQUESTS"
	rawResults  = "RAW_RESULTS"
)

func newRaw(ctx context.Context, nc *nats.Conn, body []byte) (*raw, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	_ = js.DeleteStream(ctx, rawRequests)
	_ = js.DeleteStream(ctx, rawResults)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: rawRequests, Subjects: []string{"raw.request"},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
	}); err != nil {
		return nil, fmt.Errorf("create %s: %w", rawRequests, err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: rawResults, Subjects: []string{"raw.result.*"}, MaxAge: time.Hour,
	}); err != nil {
		return nil, fmt.Errorf("create %s: %w", rawResults, err)
	}
	cons, err := js.CreateConsumer(ctx, rawRequests, jetstream.ConsumerConfig{
		Durable: "raw", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 4096, MaxWaiting: 4096,
	})
	if err != nil {
		return nil, fmt.Errorf("create consumer: %w", err)
	}
	return &raw{js: js, cons: cons, body: body}, nil
}

func (r *raw) fill(ctx context.Context, n int) error {
	return fill(ctx, r.js, n, func(int) *nats.Msg { return &nats.Msg{Subject: "raw.request", Data: r.body} })
}

// drain works off n messages with the given number of slots and returns the time it took.
func (r *raw) drain(ctx context.Context, n, slots int) (time.Duration, error) {
	free := make(chan struct{}, slots)
	for range slots {
		free <- struct{}{}
	}
	var (
		left atomic.Int64
		fail atomic.Pointer[error]
		wg   sync.WaitGroup
	)
	left.Store(int64(n))
	begin := time.Now()
	for left.Load() > 0 && fail.Load() == nil {
		<-free
		ask := 1 + takeAll(free)
		batch, err := r.cons.Fetch(ask, jetstream.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			return 0, fmt.Errorf("fetch: %w", err)
		}
		for m := range batch.Messages() {
			ask--
			wg.Go(func() {
				if err := r.settle(ctx, m); err != nil {
					fail.Store(&err)
				}
				left.Add(-1)
				free <- struct{}{}
			})
		}
		for range ask {
			free <- struct{}{}
		}
	}
	wg.Wait()
	if err := fail.Load(); err != nil {
		return 0, *err
	}
	return time.Since(begin), nil
}

func (r *raw) settle(ctx context.Context, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	id := fmt.Sprintf("raw-%d", meta.Sequence.Stream)
	if _, err := r.js.Publish(ctx, "raw.result."+id, r.body, jetstream.WithMsgID(id)); err != nil {
		return fmt.Errorf("publish result: %w", err)
	}
	if err := m.DoubleAck(ctx); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	return nil
}

func takeAll(c <-chan struct{}) (n int) {
	for {
		select {
		case <-c:
			n++
		default:
			return n
		}
	}
}

// fill publishes n messages asynchronously and waits for all acknowledgements.
func fill(ctx context.Context, js jetstream.JetStream, n int, msg func(i int) *nats.Msg) error {
	for i := range n {
		if _, err := js.PublishMsgAsync(msg(i)); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		if i%2000 != 1999 && i != n-1 {
			continue
		}
		select {
		case <-js.PublishAsyncComplete():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
