package event_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// tester is *testing.T or *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustLive(t tester, m event.Message) *event.Live {
	t.Helper()
	mustSatisfy(t, schemas.LiveEvent, m.Data)
	live, err := event.DecodeLive(m)
	if err != nil {
		t.Fatalf("%v in %.500s", err, m.Data)
	}
	return live
}

func TestLiveEvents(t *testing.T) {
	l := event.NewLiveEvents(full(), prefix, "host-a-1", 2)
	messages := []event.Message{l.Started(tool.Container)}
	messages = append(messages, l.Output("stdout", 0, []byte("é\n"))...)
	messages = append(messages, l.Output("stderr", 0, []byte("oops"))...)
	messages = append(messages, l.Retrying(2*time.Second, tool.Errorf(tool.ExitStatus, "Execution failed (exit code 1): oops")))
	want := []*event.Live{
		{Started: &event.Started{RequestID: "r-1", Worker: "host-a-1", Attempt: 2, Environment: tool.Container}},
		{Output: &event.Output{RequestID: "r-1", Attempt: 2, Stream: "stdout", Text: "é\n"}},
		{Output: &event.Output{RequestID: "r-1", Attempt: 2, Stream: "stderr", Text: "oops"}},
		{Retrying: &event.Retrying{RequestID: "r-1", Attempt: 2, DelayMS: 2000,
			Error: &tool.Error{Code: tool.ExitStatus, Message: "Execution failed (exit code 1): oops"}}},
	}
	ids := []string{"r-1.started.2", "r-1.output.2.0", "r-1.output.2.1", "r-1.retrying.2"}
	types := []string{event.TypeStarted, event.TypeOutput, event.TypeOutput, event.TypeRetrying}
	if len(messages) != len(want) {
		t.Fatalf("%d messages", len(messages))
	}
	for i, m := range messages {
		validated(t, m)
		live := mustLive(t, m)
		want[i].Event = event.EventInfo{ID: ids[i], Source: "/toolworker/host-a-1", Type: types[i], Subject: "sum", Time: live.Event.Time,
			CorrelationID: "c 1", CausationID: "r-1", TraceParent: traceParent, TraceState: "a=b"}
		if diff := cmp.Diff(want[i], live); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		if m.Subject != "tools.event.p-1.r-1" || m.Get("content-type") != event.ContentType || m.Get("Nats-Msg-Id") != "" {
			t.Errorf("subject %s, headers %v", m.Subject, m.Header)
		}
	}
}

func texts(t testing.TB, messages []event.Message) (texts []string, offsets []int64) {
	t.Helper()
	for _, m := range messages {
		o := mustLive(t, m).Output
		texts, offsets = append(texts, o.Text), append(offsets, o.Offset)
	}
	return texts, offsets
}

func TestOutputIsCutBetweenCharacters(t *testing.T) {
	l := event.NewLiveEvents(full(), prefix, "w", 1)
	euro := []byte("€")
	if got := l.Output("stdout", 0, euro[:1]); len(got) != 0 {
		t.Errorf("a third of a character gives %d events", len(got))
	}
	if got := l.Output("stdout", 1, euro[1:2]); len(got) != 0 {
		t.Errorf("two thirds of a character give %d events", len(got))
	}
	got, offsets := texts(t, l.Output("stdout", 2, append(euro[2:3:3], "\xff!\xe2\x82"...)))
	if diff := cmp.Diff([]string{"€\uFFFD!"}, got); diff != "" || offsets[0] != 0 {
		t.Errorf("offsets %v, texts (-want +got):\n%s", offsets, diff)
	}
	// The other stream counts for itself.
	if _, offsets = texts(t, l.Output("stderr", 0, []byte("x"))); offsets[0] != 0 {
		t.Errorf("offsets %v", offsets)
	}
	got, offsets = texts(t, l.Flush())
	if diff := cmp.Diff([]string{"\uFFFD\uFFFD"}, got); diff != "" || offsets[0] != 5 {
		t.Errorf("offsets %v, texts (-want +got):\n%s", offsets, diff)
	}
	if again := l.Flush(); len(again) != 0 {
		t.Errorf("flushed twice: %d events", len(again))
	}
}

// What was left out between two writes is seen in the offsets.
func TestOutputWithAGap(t *testing.T) {
	l := event.NewLiveEvents(full(), prefix, "w", 1)
	l.Output("stdout", 0, []byte("a\xe2"))
	got, offsets := texts(t, l.Output("stdout", 100, []byte("b")))
	if diff := cmp.Diff([]string{"\uFFFD", "b"}, got); diff != "" || offsets[0] != 1 || offsets[1] != 100 {
		t.Errorf("offsets %v, texts (-want +got):\n%s", offsets, diff)
	}
}

func TestOutputIsCutIntoChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "é\n", "€", "😀", "\xff", "\x00", "a\xe2\x82"}).Draw(t, "unit")
		raw := []byte(strings.Repeat(unit, rapid.IntRange(0, 30_000).Draw(t, "count")))
		l := event.NewLiveEvents(full(), prefix, "w", 1)
		var messages []event.Message
		for at := 0; at < len(raw); {
			n := min(rapid.IntRange(1, 50_000).Draw(t, "written"), len(raw)-at)
			messages = append(messages, l.Output("stdout", int64(at), raw[at:at+n])...)
			at += n
		}
		messages = append(messages, l.Flush()...)
		var all strings.Builder
		next := int64(0)
		for i, m := range messages {
			live := mustLive(t, m)
			if n := len(live.Output.Text); n == 0 || n > event.MaxChunk || !utf8.ValidString(live.Output.Text) {
				t.Fatalf("chunk %d of %d bytes", i, n)
			}
			if live.Output.Offset < next {
				t.Fatalf("chunk %d at %d, expected at least %d", i, live.Output.Offset, next)
			}
			next = live.Output.Offset + 1
			all.WriteString(live.Output.Text)
		}
		if want := string([]rune(string(raw))); all.String() != want {
			t.Fatalf("%d bytes of text, expected %d", all.Len(), len(want))
		}
	})
}

func TestDecodeLiveRefuses(t *testing.T) {
	l := event.NewLiveEvents(full(), prefix, "w", 1)
	started := string(l.Started(tool.Host).Data)
	for name, c := range map[string]struct{ body, want string }{
		"noise":        {"noise", "no strict JSON"},
		"a result":     {strings.Replace(started, event.TypeStarted, event.TypeResult, 1), `type "dev.toolworker.result.v1": expected`},
		"attempt zero": {strings.Replace(started, `"attempt":1`, `"attempt":0`, 1), "/data/attempt: 0: expected"},
		"no worker":    {strings.Replace(started, `"worker"`, `"werker"`, 1), "/data/worker: missing"},
	} {
		if _, err := event.DecodeLive(event.Message{Data: []byte(c.body)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}
