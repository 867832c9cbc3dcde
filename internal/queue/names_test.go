package queue_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestNames(t *testing.T) {
	def, own := queue.Names{}, queue.Names{SubjectPrefix: "acme.tools", StreamPrefix: "ACME"}
	for _, c := range []struct{ got, want string }{
		{def.RequestsStream(), "TOOL_REQUESTS"}, {own.RequestsStream(), "ACME_REQUESTS"},
		{def.ResultsStream(), "TOOL_RESULTS"}, {def.EventsStream(), "TOOL_EVENTS"},
		{def.DeadLettersStream(), "TOOL_DEAD_LETTERS"}, {def.CancellationsStream(), "TOOL_CANCELLATIONS"},
		{def.CatalogBucket(), "tool_catalog"}, {own.CatalogBucket(), "acme_catalog"},
		{def.AttemptsBucket(), "tool_attempts"}, {def.WorkersBucket(), "tool_workers"},
		{def.PayloadsStore(), "tool_payloads"}, {own.InputsStore("p"), "acme_inputs_p"},
		{def.RequestSubject("default", tool.High, "p"), "tools.request.default.high.p"},
		{own.WakeSubject("gpu", "*", "*"), "acme.tools.wake.gpu.*.*"},
		{def.ResultSubject("p", "a"), "tools.result.p.a"}, {def.EventSubject("p", "a"), "tools.event.p.a"},
		{def.CancelSubject("p", "a"), "tools.cancel.p.a"},
		{def.DeadSubject("default", "p", tool.Internal), "tools.dead.default.p.internal"},
		{def.DeadSubject("", "a.b", ""), "tools.dead._._._"},
		{queue.RequestMsgID("p", "a"), "p/a"}, {queue.ResultMsgID("p", "a"), "p/a/result"},
		{def.InputRef("p", "a", "00"), "nats-obj://tool_inputs_p/a?sha256=00"},
		{queue.PayloadName("p", "a", "stdout"), "p/a/stdout"},
	} {
		if c.got != c.want {
			t.Errorf("%s, expected %s", c.got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	n := queue.Names{SubjectPrefix: "acme.tools"}
	if tokens, err := n.Split("acme.tools.request.default.high.p", "request", 3); err != nil || strings.Join(tokens, " ") != "default high p" {
		t.Errorf("%v, %v", tokens, err)
	}
	for _, wrong := range []string{"tools.request.default.high.p", "acme.tools.request.default.high", "acme.tools.wake.default.high.p", ""} {
		if tokens, err := n.Split(wrong, "request", 3); err == nil {
			t.Errorf("%s: %v", wrong, tokens)
		}
	}
}

func TestConsumerName(t *testing.T) {
	if got := queue.ConsumerName("default", tool.High, "project-1"); got != "default-high-project-1" {
		t.Errorf("%s", got)
	}
	a, b := queue.ConsumerName("a", tool.High, "high-b"), queue.ConsumerName("a-high", tool.High, "b")
	if a == b {
		t.Errorf("two lanes share the consumer %s", a)
	}
	if strings.Contains(a, ".") {
		t.Errorf("%s is no consumer name", a)
	}
}

func TestConsumerNamesAreValidAndDistinct(t *testing.T) {
	type lane struct {
		pool, project string
		priority      tool.Priority
	}
	name := rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9_-]{1,128}`),
		rapid.StringMatching(`(a|b|-|high|low|normal){1,8}`),
	)
	seen := map[string]lane{}
	rapid.Check(t, func(t *rapid.T) {
		l := lane{name.Draw(t, "pool"), name.Draw(t, "project"), rapid.SampledFrom(tool.Priorities[:]).Draw(t, "priority")}
		got := queue.ConsumerName(l.pool, l.priority, l.project)
		if len(got) > 255 || strings.ContainsAny(got, ". >*\t\r\n/\\") {
			t.Fatalf("%q is no consumer name", got)
		}
		if other, ok := seen[got]; ok && other != l {
			t.Fatalf("%+v and %+v share the consumer %s", l, other, got)
		}
		seen[got] = l
	})
}
