package trace

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// Names of the distributed tracing extension of CloudEvents, which are those
// of the W3C headers too.
const (
	TraceParent = "traceparent"
	TraceState  = "tracestate"
)

// propagator carries W3C trace contexts and baggage.
var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// Carrier carries a trace context in the headers of a NATS message. NATS
// keeps the letter case of header names, so it reads any and writes lower case.
type Carrier map[string][]string

var _ propagation.TextMapCarrier = Carrier(nil)

// Get returns the first value of key in any letter case, the exact one first.
func (c Carrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	for name, v := range c {
		if len(v) > 0 && strings.EqualFold(name, key) {
			return v[0]
		}
	}
	return ""
}

// Set replaces every spelling of key by the lower-case one.
func (c Carrier) Set(key, value string) {
	for name := range c {
		if strings.EqualFold(name, key) {
			delete(c, name)
		}
	}
	c[strings.ToLower(key)] = []string{value}
}

// Keys lists the names of all headers.
func (c Carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for name := range c {
		keys = append(keys, name)
	}
	return keys
}

// Extract returns ctx with the context of the last hop: the one in header,
// else the distributed tracing extension of the event. What is malformed
// counts as absent.
func Extract(ctx context.Context, header map[string][]string, traceparent, tracestate string) context.Context {
	ext := propagation.MapCarrier{TraceParent: traceparent, TraceState: tracestate}
	ctx = propagation.TraceContext{}.Extract(ctx, ext)
	return propagator.Extract(ctx, Carrier(header))
}

// Inject writes the context of ctx into header; without one it writes nothing.
func Inject(ctx context.Context, header map[string][]string) {
	propagator.Inject(ctx, Carrier(header))
}

// Extension returns the context of ctx in the form of the distributed tracing
// extension; both are "" without one.
func Extension(ctx context.Context) (traceparent, tracestate string) {
	ext := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, ext)
	return ext[TraceParent], ext[TraceState]
}
