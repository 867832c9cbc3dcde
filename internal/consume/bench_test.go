package consume_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

// The benchmarks compare the consumer, with an executor that does nothing,
// with a loop that does the least that keeps the promise of one answer per
// request: a fetch for the free slots, a publish with a message id, a
// confirmed acknowledgement. Both work a backlog off, in one process with the
// server. Run them with a fixed -benchtime, such as 20000x.

func BenchmarkRawLoop(b *testing.B) {
	for _, slots := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(slots), func(b *testing.B) { benchRaw(b, slots) })
	}
}

func BenchmarkConsumer(b *testing.B) {
	for _, slots := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(slots), func(b *testing.B) { benchConsumer(b, slots, 1) })
	}
	for _, projects := range []int{10, 100} {
		b.Run(fmt.Sprintf("64/%dprojects", projects), func(b *testing.B) { benchConsumer(b, 64, projects) })
	}
}

func benchRaw(b *testing.B, slots int) {
	s := queuetest.Start(b)
	p := newPlanner(b, s)
	fill(b, p, 1)
	js := p.JetStream()
	ctx := context.Background()
	consumer, err := js.CreateConsumer(ctx, "TOOL_REQUESTS", jetstream.ConsumerConfig{
		Durable: "raw", FilterSubject: "tools.request.default.normal.*", AckPolicy: jetstream.AckExplicitPolicy,
		MaxAckPending: 4096, MaxWaiting: 4096,
	})
	if err != nil {
		b.Fatal(err)
	}
	free := make(chan struct{}, slots)
	for range slots {
		free <- struct{}{}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	body := make([]byte, 512)
	before := processorTime()
	b.ResetTimer()
	for left.Load() > 0 {
		<-free
		n := 1
		for len(free) > 0 {
			<-free
			n++
		}
		batch, err := consumer.Fetch(n, jetstream.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		for m := range batch.Messages() {
			n--
			go func() {
				id := strconv.FormatUint(rand.Uint64(), 36)
				if _, err := js.Publish(ctx, "tools.result.p."+id, body, jetstream.WithMsgID(id)); err != nil {
					b.Error(err)
				}
				if err := m.DoubleAck(ctx); err != nil {
					b.Error(err)
				}
				left.Add(-1)
				free <- struct{}{}
			}()
		}
		for ; n > 0; n-- {
			free <- struct{}{}
		}
	}
	report(b, before)
}

func benchConsumer(b *testing.B, slots, projects int) {
	s := queuetest.Start(b)
	p := newPlanner(b, s)
	fill(b, p, projects)
	before := processorTime()
	b.ResetTimer()
	settled := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(b.N))
	w := start(b, s, func(ctx context.Context, r *tool.Request) *tool.Result {
		if left.Add(-1) == 0 {
			close(settled)
		}
		return succeed(ctx, r)
	}, func(c *consume.Config) { c.Slots = slots })
	<-settled
	w.drain(b)
	report(b, before)
}

// report gives what a busy machine does not change: the processor time of a
// message, client and server together.
func report(b *testing.B, before time.Duration) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-us/msg")
}

func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fill queues b.N requests.
func fill(b *testing.B, p *planner, projects int) {
	b.StopTimer()
	defer b.StartTimer()
	p.sendAll(b.N, func(i int) *tool.Request { return request(fmt.Sprint("p", i%projects), rid(i)) })
}

// BenchmarkLatency is the time from publishing to the stored result, of one
// request at a time.
func BenchmarkLatency(b *testing.B) {
	s := queuetest.Start(b)
	p := newPlanner(b, s)
	start(b, s, succeed, func(c *consume.Config) { c.Slots = 1 })
	results := make(chan struct{}, 1)
	sub, err := p.Conn().Subscribe("tools.result.p.*", func(m *natsMessage) { results <- struct{}{} })
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	var times []time.Duration
	b.ResetTimer()
	for i := range b.N {
		m, err := event.EncodeRequest(request("p", rid(i)), "tools")
		if err != nil {
			b.Fatal(err)
		}
		msg := natsMsg(m, queue.RequestMsgID("p", rid(i)))
		began := time.Now()
		if _, err := p.JetStream().PublishMsg(b.Context(), msg); err != nil {
			b.Fatal(err)
		}
		<-results
		times = append(times, time.Since(began))
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "median-us")
	b.ReportMetric(float64(times[len(times)*95/100].Microseconds()), "p95-us")
}
