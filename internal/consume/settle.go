package consume

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

const (
	// encodeTries bounds how often a result is encoded that nothing but
	// itself or its store can spoil.
	encodeTries                 = 8
	firstEncode, lastEncode     = 100 * time.Millisecond, 5 * time.Second
	unrecorded                  = "its result could not be stored: "
	maxReasonOfUnstored     int = 300
)

// failure is the result of a request that was not run to its end.
func (d *delivery) failure(e *tool.Error) *tool.Result {
	r := d.request
	return &tool.Result{
		RequestID: r.ID, Project: d.lane.Project, PlanID: r.Plan.ID, Tool: r.Name(),
		Error: e, Worker: d.cfg.Worker,
	}
}

func (d *delivery) expired() *tool.Result {
	return d.failure(tool.Errorf(tool.Expired, "expired at %s", d.request.ExpiryTime.UTC().Format(time.RFC3339Nano)))
}

func (d *delivery) cancelledResult() *tool.Result {
	return d.failure(tool.Errorf(tool.Cancelled, "cancelled before it was started"))
}

// answer stores a result and acknowledges the request.
func (d *delivery) answer(ctx context.Context, result *tool.Result) {
	if d.store(ctx, result) && d.acknowledge(ctx) {
		d.outcome.disposition = trace.Answered
	}
}

// answerAside is answer for a request that is a dead letter as well.
func (d *delivery) answerAside(ctx context.Context, result *tool.Result) {
	if d.store(ctx, result) && d.bury(ctx, result.Error.Code, result.Error.Message) && d.acknowledge(ctx) {
		d.outcome.disposition = trace.DeadLettered
	}
}

// putAside makes a message a dead letter and takes it out of the queue.
func (d *delivery) putAside(ctx context.Context, code tool.Code, reason string) {
	if !d.bury(ctx, code, reason) {
		return
	}
	if err := d.message.Term(ctx); err != nil {
		d.unsettled(ctx, "terminate", err)
		return
	}
	d.outcome.disposition = trace.DeadLettered
}

// bury stores the message among the dead letters.
func (d *delivery) bury(ctx context.Context, code tool.Code, reason string) bool {
	err := d.cfg.DeadLetters.PutDeadLetter(ctx, DeadLetter{
		Request: d.event, Lane: d.lane, Sequence: d.info.Sequence, Deliveries: d.info.Count,
		Code: code, Reason: reason,
	})
	if err != nil {
		d.unsettled(ctx, "put aside", err)
		return false
	}
	d.cfg.Metrics.DeadLettered(ctx, code)
	d.outcome.why = reason
	return true
}

// store stores the result, unless the request has one; either is success.
func (d *delivery) store(ctx context.Context, result *tool.Result) bool {
	d.setResult(result)
	// A delivery that missed its heartbeats may have been answered by somebody
	// else, whose large members must not be written over.
	if d.heartbeats.stale(d.beat) {
		if yes, err := d.cfg.Answers.Answered(ctx, result.Project, result.RequestID); err == nil && yes {
			d.outcome.why = "answered by somebody else"
			return true
		}
	}
	ctx, span := d.cfg.Spans.SendResult(ctx, trace.Message{
		Subject: d.cfg.Prefix + ".result." + result.Project + "." + result.RequestID, ID: result.RequestID + ".result",
		Source: event.Source(result.Worker), Type: event.TypeResult, EventSubject: result.Tool,
	})
	defer span.End()
	err := d.tryStore(ctx, result)
	if err != nil && ctx.Err() == nil {
		// This result can never be stored; its request still gets an answer.
		reference := newReference()
		d.cfg.Log.ErrorContext(ctx, "result cannot be stored", "reference", reference, "project", result.Project, "id", result.RequestID, "error", err)
		unstored := d.failure(tool.Errorf(tool.Internal, "%s%s (reference %s)", unrecorded, clip(err.Error()), reference))
		unstored.Attempt, unstored.Duration = result.Attempt, result.Duration
		d.setResult(unstored)
		err = d.tryStore(ctx, unstored)
	}
	if err != nil {
		trace.Fail(span, "unstored")
		d.unsettled(ctx, "store result", err)
		return false
	}
	d.cfg.Cancellations.Forget(result.Project, result.RequestID)
	return true
}

// setResult frees what the result before held.
func (d *delivery) setResult(result *tool.Result) {
	if old := d.outcome.result; old != nil && old != result {
		old.Close()
	}
	d.outcome.result = result
}

// tryStore stores one result under a random name of this run, by which it is
// told from somebody else's.
func (d *delivery) tryStore(ctx context.Context, result *tool.Result) error {
	m, err := d.encode(ctx, result)
	if err != nil {
		return err
	}
	if m.Header == nil {
		m.Header = map[string][]string{}
	}
	m.Header[event.HeaderExecution] = []string{rand.Text()}
	trace.Inject(ctx, m.Header)
	ours, err := d.cfg.Answers.Store(ctx, result.Project, result.RequestID, m)
	if err == nil && !ours {
		d.outcome.why = "answered by somebody else"
	}
	return err
}

// encode encodes a result. Its store may be away for a while.
func (d *delivery) encode(ctx context.Context, result *tool.Result) (event.Message, error) {
	delay := firstEncode
	for try := 1; ; try++ {
		m, err := d.cfg.Answers.Encode(ctx, result, d.request)
		if err == nil || try >= encodeTries || ctx.Err() != nil {
			return m, err
		}
		d.cfg.Log.DebugContext(ctx, "encode result", "id", result.RequestID, "try", try, "error", err)
		select {
		case <-ctx.Done():
			return event.Message{}, err
		case <-time.After(delay):
			delay = min(2*delay, lastEncode)
		}
	}
}

// acknowledge takes the message out of the queue, whose result is stored.
func (d *delivery) acknowledge(ctx context.Context) bool {
	ctx, span := d.cfg.Spans.AckRequest(ctx, d.spanMessage())
	defer span.End()
	err := d.message.Ack(ctx)
	if err != nil {
		trace.Fail(span, "unacknowledged")
		d.unsettled(ctx, "acknowledge", err)
	}
	return err == nil
}

// handBack gives the message back. What the book cannot take in time makes a
// start count as lost that was none; the message goes back all the same.
func (d *delivery) handBack(ctx context.Context, delay time.Duration, change func(*Record)) {
	if change == nil {
		change = func(*Record) {}
	}
	if err := d.ledger.giveBack(ctx, change); err != nil {
		d.cfg.Log.WarnContext(ctx, "write attempts", "project", d.request.Project, "id", d.request.ID, "error", err)
	}
	if err := d.message.Nak(delay); err != nil {
		d.unsettled(ctx, "give back", err)
		return
	}
	d.outcome.disposition = trace.GivenBack
}

// unsettled notes what could not be done: the message is delivered again.
func (d *delivery) unsettled(ctx context.Context, what string, err error) {
	d.outcome.disposition = trace.Abandoned
	d.outcome.why = what + ": " + err.Error()
	if !errors.Is(err, ErrGone) {
		d.cfg.Log.WarnContext(ctx, what, "project", d.lane.Project, "sequence", d.info.Sequence, "error", err)
	}
}

func clip(s string) string { return s[:min(len(s), maxReasonOfUnstored)] }
