package consume

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

const (
	firstFault, lastFault = time.Second, time.Minute
	maxBackoff            = time.Hour
)

// execute runs the request and settles it by how that ended.
func (d *delivery) execute(ctx, run context.Context) {
	r := d.request
	if err := d.ledger.begin(ctx, d.once); err != nil {
		if errors.Is(err, errWorkersLost) || errors.Is(err, errStartedBefore) {
			d.lost(ctx, err)
		} else {
			d.outcome.why = err.Error()
		}
		return
	}
	if r.Expired(time.Now()) { // it may have waited
		d.answer(ctx, d.expired())
		return
	}
	started := time.Now()
	d.outcome.queued = max(0, started.Sub(d.info.Stored))
	live := d.newLive()
	result := d.cfg.Executor.Execute(withLive(run, live), r)
	live.end()
	d.outcome.executed = time.Now()
	d.complete(result)
	d.conclude(ctx, run, result)
}

// complete fills in what only the consumer knows of a result.
func (d *delivery) complete(result *tool.Result) {
	d.setResult(result)
	result.RequestID, result.Project, result.Worker = d.request.ID, d.request.Project, d.cfg.Worker
	result.Metadata.QueuedMS = float64(d.outcome.queued) / float64(time.Millisecond)
	if result.Status() != tool.StatusRejected {
		result.Attempt = d.ledger.attempt()
	}
}

// conclude decides between a result and another start.
func (d *delivery) conclude(ctx, run context.Context, result *tool.Result) {
	cause := context.Cause(run)
	switch {
	case result.Fault == nil:
		if delay, again := d.again(result); again {
			d.retry(ctx, result, delay)
			return
		}
	case errors.Is(cause, tool.ErrCancelled):
		// Whatever broke, it was on the way to this.
		result.Error, result.Fault = tool.Errorf(tool.Cancelled, "cancelled"), nil
	case d.once && errors.Is(cause, tool.ErrDrained):
		d.lost(ctx, errStartedBefore)
		return
	case d.once:
		// It must not be started again, whoever is to blame.
		d.giveUp(ctx, result)
		return
	case errors.Is(result.Fault, tool.ErrDrained) || errors.Is(cause, tool.ErrDrained):
		d.handBack(ctx, 0, nil)
		return
	default:
		d.fault(ctx, result)
		return
	}
	d.answer(ctx, result)
}

// again says whether the request's retry policy wants another start, and when
// (PROTOCOL.md section 6.4).
func (d *delivery) again(result *tool.Result) (time.Duration, bool) {
	r := d.request
	if result.Error == nil || d.once || result.Attempt >= r.Retry.MaxAttempts {
		return 0, false
	}
	switch result.Error.Code {
	case tool.ExitStatus, tool.TimedOut, tool.OutOfMemory:
	default:
		return 0, false
	}
	delay := backoff(r.Retry.BackoffSeconds, result.Attempt, rand.Float64())
	return delay, !r.Expired(time.Now().Add(delay))
}

// backoff is seconds x 2^(attempt-1), at most an hour, and by chance (0 to 1)
// up to a fifth less or more.
func backoff(seconds float64, attempt int, chance float64) time.Duration {
	limit := maxBackoff.Seconds()
	for n := 1; n < attempt && seconds < limit; n++ {
		seconds *= 2
	}
	seconds = min(seconds, limit) * (0.8 + 0.4*chance)
	return time.Duration(min(seconds, limit) * float64(time.Second))
}

func (d *delivery) retry(ctx context.Context, result *tool.Result, delay time.Duration) {
	due := time.Now().Add(delay)
	d.publishRetrying(result, delay)
	d.handBack(ctx, delay, func(rec *Record) {
		rec.Failed++
		rec.NotBefore = due
	})
	if d.outcome.disposition == trace.GivenBack {
		d.outcome.disposition, d.outcome.why = trace.Retried, string(result.Error.Code)
	}
}

// fault gives a request back that the infrastructure failed, for longer every
// time, and answers it when that happened too often.
func (d *delivery) fault(ctx context.Context, result *tool.Result) {
	if !d.ledger.known {
		if err := d.ledger.reload(ctx); err != nil {
			d.outcome.why = err.Error()
			return
		}
	}
	faults := d.ledger.rec.Faults + 1
	d.cfg.Log.WarnContext(ctx, "infrastructure fault", "project", d.request.Project, "id", d.request.ID,
		"fault", result.Fault, "times", faults)
	if faults >= MaxFaults {
		d.giveUp(ctx, result)
		return
	}
	d.outcome.why = result.Fault.Error()
	d.handBack(ctx, faultDelay(faults), func(rec *Record) { rec.Faults = max(rec.Faults, faults-1) + 1 })
}

// faultDelay grows from a second to a minute.
func faultDelay(faults int) time.Duration {
	delay := firstFault
	for n := 1; n < faults && delay < lastFault; n++ {
		delay *= 4
	}
	return min(delay, lastFault)
}

// giveUp answers a request that the infrastructure failed for good, and puts
// it aside.
func (d *delivery) giveUp(ctx context.Context, result *tool.Result) {
	reference := newReference()
	d.cfg.Log.ErrorContext(ctx, "request given up", "reference", reference, "project", d.request.Project, "id", d.request.ID,
		"fault", result.Fault)
	failed := d.failure(tool.Errorf(tool.Internal, "infrastructure fault (reference %s)", reference))
	failed.Attempt, failed.Metadata, failed.Duration = result.Attempt, result.Metadata, result.Duration
	d.answerAside(ctx, failed)
}
