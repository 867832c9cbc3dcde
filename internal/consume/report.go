package consume

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/trace"
)

// report says how the delivery ended: one line, the metrics, the span.
func (d *delivery) report(ctx context.Context) {
	o := &d.outcome
	settle := time.Duration(0)
	if !o.executed.IsZero() {
		settle = time.Since(o.executed)
	}
	d.cfg.Metrics.Settled(ctx, d.lane.Pool, d.lane.Priority, o.disposition, settle)
	answered := o.result != nil && (o.disposition == trace.Answered || o.disposition == trace.DeadLettered)
	if answered && d.request != nil {
		d.cfg.Metrics.Executed(ctx, d.request, o.result, o.queued)
	}
	if d.span.IsRecording() {
		d.span.SetAttributes(trace.KeyDisposition.String(string(o.disposition)), trace.KeyWorker.String(d.cfg.Worker))
		if answered {
			d.span.SetAttributes(trace.Outcome(o.result)...)
			trace.FailResult(d.span, o.result)
		} else if o.disposition == trace.Abandoned {
			d.span.SetStatus(codes.Error, o.why)
		}
	}
	d.log(ctx, answered)
}

func (d *delivery) log(ctx context.Context, answered bool) {
	o := &d.outcome
	level := slog.LevelInfo
	if o.disposition == trace.Abandoned || o.disposition == trace.DeadLettered {
		level = slog.LevelWarn
	}
	if !d.cfg.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs,
		slog.String("disposition", string(o.disposition)),
		slog.String("pool", d.lane.Pool), slog.String("priority", string(d.lane.Priority)),
		slog.String("project", d.lane.Project))
	if d.request != nil {
		attrs = append(attrs, slog.String("id", d.request.ID), slog.String("tool", d.request.Name()))
	} else {
		attrs = append(attrs, slog.Uint64("sequence", d.info.Sequence))
	}
	if answered {
		attrs = append(attrs, slog.String("status", string(o.result.Status())), slog.Int("attempt", o.result.Attempt))
		if o.result.Error != nil {
			attrs = append(attrs, slog.String("code", string(o.result.Error.Code)))
		}
		if o.result.Duration > 0 {
			attrs = append(attrs, slog.Duration("duration", o.result.Duration))
		}
	}
	if o.queued > 0 {
		attrs = append(attrs, slog.Duration("queued", o.queued))
	}
	if d.info.Count > 1 {
		attrs = append(attrs, slog.Uint64("delivery", d.info.Count))
	}
	if o.why != "" {
		attrs = append(attrs, slog.String("why", o.why))
	}
	d.cfg.Log.LogAttrs(ctx, level, "settled", attrs...)
}

func (d *delivery) spanMessage() trace.Message {
	m := trace.Message{Subject: d.event.Subject, Size: len(d.event.Data)}
	if d.request != nil {
		m.ID, m.Source, m.Type, m.EventSubject = d.request.ID, d.request.Source, event.TypeRequest, d.request.Name()
	}
	return m
}
