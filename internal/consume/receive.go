package consume

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/sourcegraph/conc/panics"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// delivery is one message from its receipt to its settlement.
type delivery struct {
	*Consumer
	lane     Lane
	message  Message
	info     Delivery
	event    event.Message
	received time.Time
	beat     *beat
	slot     bool // it holds a slot of its lane
	span     oteltrace.Span

	request *tool.Request // nil until it is decoded
	once    bool          // its tool must not be started twice
	bound   int           // of its tool; 0: none
	ledger  *ledger
	outcome outcome
}

// outcome is how a delivery ended, for the log and the metrics.
type outcome struct {
	disposition trace.Disposition
	result      *tool.Result // nil when none was made
	why         string
	executed    time.Time // the end of the execution; zero when nothing ran
	queued      time.Duration
}

// receive takes a message that has a slot.
func (c *Consumer) receive(lane Lane, m Message) {
	d := &delivery{
		Consumer: c, lane: lane, message: m, info: m.Delivery(), event: m.Event(),
		received: time.Now(), beat: c.heartbeats.start(m), slot: true,
	}
	c.pending.Add(1)
	c.cfg.Metrics.Received(c.settling, lane.Pool, lane.Priority)
	c.work.Go(d.run)
}

// run brings the delivery to its end, whatever happens on the way.
func (d *delivery) run() {
	var decoded error
	p := panics.Try(func() { d.request, decoded = event.DecodeRequest(d.event, d.cfg.Prefix) })
	ctx := d.settling
	if d.request != nil {
		ctx = trace.Extract(ctx, d.event.Header, d.request.TraceParent, d.request.TraceState)
	} else {
		ctx = trace.Extract(ctx, d.event.Header, "", "")
	}
	ctx, d.span = d.cfg.Spans.Process(ctx, d.received, d.spanMessage())
	d.outcome = outcome{disposition: trace.Abandoned}
	if p == nil {
		p = panics.Try(func() { d.process(ctx, decoded) })
	}
	if p != nil {
		d.recover(ctx, p)
	}
	d.heartbeats.stop(d.beat)
	if d.slot {
		d.release(d.lane)
	}
	d.pending.Add(-1)
	d.report(ctx)
	d.span.End()
	if d.outcome.result != nil {
		d.outcome.result.Close()
	}
}

// recover settles a request whose handling panicked: the others do not notice.
func (d *delivery) recover(ctx context.Context, p *panics.Recovered) {
	reference := newReference()
	d.cfg.Log.ErrorContext(ctx, "request panicked", "reference", reference, "project", d.lane.Project, "sequence", d.info.Sequence,
		"panic", p.Value, "stack", string(p.Stack))
	d.outcome = outcome{disposition: trace.Abandoned, why: "panic"}
	again := panics.Try(func() {
		if d.request == nil {
			d.putAside(ctx, tool.Internal, "reading it panicked (reference "+reference+")")
			return
		}
		d.answer(ctx, d.failure(tool.Errorf(tool.Internal, "internal error (reference %s)", reference)))
	})
	if again != nil {
		d.cfg.Log.ErrorContext(ctx, "settling a request that panicked", "reference", reference, "panic", again.Value, "stack", string(again.Stack))
		_ = d.message.Nak(faultDelay(MaxFaults))
	}
}

// process is the way of a message; every end of it settles the message.
func (d *delivery) process(ctx context.Context, decoded error) {
	if !d.readable(ctx, decoded) {
		return
	}
	r := d.request
	d.ledger = newLedger(d.cfg.Attempts, keyOf(r), d.info)
	if d.Draining() {
		d.handBack(ctx, 0, nil)
		return
	}
	run, end, ok := d.runs.begin(ctx, keyOf(r))
	if !ok {
		// The queue lost patience with a delivery that is still being worked
		// on here. Its heartbeats and its acknowledgement count for this one too.
		d.outcome = outcome{disposition: trace.AlreadyAnswered, why: "in hand already"}
		return
	}
	defer end()
	if d.answered(ctx) {
		return
	}
	if r.Expired(time.Now()) {
		d.answer(ctx, d.expired())
		return
	}
	// The run is known by now: a cancellation is either in the set or ends it.
	if d.cfg.Cancellations.Cancelled(r.Project, r.ID) {
		d.answer(ctx, d.cancelledResult())
		return
	}
	if !d.mayStart(ctx) {
		return
	}
	leave, ok := d.enter(ctx, run)
	if !ok {
		return
	}
	defer leave()
	d.execute(ctx, run)
}

// readable goes on from what decoding gave; false when the delivery is
// settled already.
func (d *delivery) readable(ctx context.Context, err error) bool {
	var ref *event.Reference
	if errors.As(err, &ref) {
		var data []byte
		if data, err = d.cfg.Inputs.Fetch(ctx, ref); err == nil {
			d.request, err = ref.Decode(data)
		}
	}
	var unreadable *event.Unreadable
	var invalid *tool.Error
	switch {
	case err == nil:
		return true
	case errors.As(err, &unreadable):
		d.reject(ctx, unreadable)
	case errors.As(err, &invalid) && d.request != nil:
		d.answer(ctx, d.failure(invalid))
	case ctx.Err() != nil:
		d.outcome.why = err.Error()
	default:
		d.reject(ctx, &event.Unreadable{Reason: err.Error()})
	}
	return false
}

// reject puts a message aside that is no event, and answers it where an id
// could be read.
func (d *delivery) reject(ctx context.Context, u *event.Unreadable) {
	if u.ID != "" {
		d.request = &tool.Request{
			Envelope: tool.Envelope{ID: u.ID, CorrelationID: u.ID},
			Pool:     d.lane.Pool, Priority: d.lane.Priority, Project: d.lane.Project,
		}
		if !d.store(ctx, d.failure(u.Rejection())) {
			return
		}
	}
	d.putAside(ctx, tool.InvalidRequest, u.Reason)
}

// answered acknowledges a request that has a result. Most first deliveries
// cannot have one, and a look-up of each would cost a fifth of the throughput.
func (d *delivery) answered(ctx context.Context) bool {
	r := d.request
	if d.info.first() && !r.Time.IsZero() && d.info.Stored.Sub(r.Time) <= lateAfter {
		return false
	}
	yes, err := d.cfg.Answers.Answered(ctx, r.Project, r.ID)
	if err != nil {
		d.outcome.why = err.Error()
		return true
	}
	if !yes {
		return false
	}
	if d.acknowledge(ctx) {
		d.outcome.disposition = trace.AlreadyAnswered
	}
	return true
}

// lateAfter is when a publisher's retry may have missed the window in which
// the server recognises duplicates (ten minutes).
const lateAfter = 9 * time.Minute

func newReference() string { return rand.Text()[:12] }
