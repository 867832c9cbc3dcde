package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"
	oteltrace "go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"
)

const (
	parentA = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	parentB = "00-11111111111111111111111111111111-2222222222222222-00"
)

func TestCarrierReadsAnyLetterCase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var name strings.Builder
		for _, c := range TraceParent {
			if rapid.Bool().Draw(t, "upper") {
				c -= 'a' - 'A'
			}
			name.WriteRune(c)
		}
		c := Carrier{"Other": {"x"}, name.String(): {parentA, "second"}}
		if got := c.Get(TraceParent); got != parentA {
			t.Fatalf("Get of %q: %q", name.String(), got)
		}
		c.Set("TraceParent", parentB)
		if diff := cmp.Diff(Carrier{"Other": {"x"}, TraceParent: {parentB}}, c); diff != "" {
			t.Fatalf("after Set (-want +got):\n%s", diff)
		}
	})
}

func TestCarrierPrefersTheExactName(t *testing.T) {
	c := Carrier{"Traceparent": {parentB}, TraceParent: {parentA}, "TRACESTATE": nil}
	if got := c.Get(TraceParent); got != parentA {
		t.Errorf("Get: %q", got)
	}
	if got := c.Get(TraceState); got != "" {
		t.Errorf("Get of a header without values: %q", got)
	}
}

func TestExtract(t *testing.T) {
	for name, tc := range map[string]struct {
		header              map[string][]string
		traceparent, state  string
		wantParent, wantTrS string
	}{
		"nothing":                        {},
		"header wins":                    {header: map[string][]string{"Traceparent": {parentB}}, traceparent: parentA, state: "a=1", wantParent: parentB},
		"extension without a header":     {traceparent: parentA, state: "a=1", wantParent: parentA, wantTrS: "a=1"},
		"a malformed header is absent":   {header: map[string][]string{TraceParent: {"00-zz"}}, traceparent: parentA, wantParent: parentA},
		"a malformed extension as well":  {traceparent: "nonsense", state: "a=1"},
		"the state of another is unread": {header: map[string][]string{TraceParent: {parentB}, "TraceState": {"b=2"}}, traceparent: parentA, state: "a=1", wantParent: parentB, wantTrS: "b=2"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := Extract(t.Context(), tc.header, tc.traceparent, tc.state)
			parent, state := Extension(ctx)
			if parent != tc.wantParent || state != tc.wantTrS {
				t.Errorf("got %q %q, want %q %q", parent, state, tc.wantParent, tc.wantTrS)
			}
		})
	}
}

func TestInject(t *testing.T) {
	ctx := Extract(t.Context(), map[string][]string{"TRACEPARENT": {parentA}, "tracestate": {"a=1"}, "Baggage": {"user=7"}}, "", "")
	if got := baggage.FromContext(ctx).Member("user").Value(); got != "7" {
		t.Errorf("baggage: %q", got)
	}
	header := map[string][]string{"Traceparent": {parentB}, "Nats-Msg-Id": {"p/1"}}
	Inject(ctx, header)
	want := map[string][]string{TraceParent: {parentA}, TraceState: {"a=1"}, "baggage": {"user=7"}, "Nats-Msg-Id": {"p/1"}}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}

	header = map[string][]string{}
	Inject(t.Context(), header)
	if len(header) != 0 {
		t.Errorf("without a context: %v", header)
	}
}

func TestTraceGoesOnWhereTracingIsOff(t *testing.T) {
	ctx := Extract(t.Context(), map[string][]string{TraceParent: {parentA}}, "", "")
	var off Spans
	ctx, process := off.Process(ctx, zeroTime, Message{})
	ctx, execute := off.ExecuteTool(ctx, request())
	ctx, send := off.SendResult(ctx, Message{})
	for _, s := range []oteltrace.Span{process, execute, send} {
		if s.IsRecording() {
			t.Error("a span is recording")
		}
		s.End()
	}
	if got, _ := Extension(ctx); got != parentA {
		t.Errorf("the context passed on is %q", got)
	}
}

func TestNoCostWhereTracingIsOff(t *testing.T) {
	var off Spans
	ctx, r := t.Context(), request()
	with := testing.AllocsPerRun(100, func() {
		_, s := off.ExecuteTool(ctx, r)
		s.End()
	})
	if with > 2 { // the context and the span in it
		t.Errorf("%v allocations a span", with)
	}
}
