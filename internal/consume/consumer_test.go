package consume_test

import (
	"testing"

	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestRequestIsAnsweredOnceAndAcknowledged(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	start(t, s, succeed, nil)
	for i := range 50 {
		p.send(request("p", rid(i)))
		doc := p.result("p", rid(i))
		if doc.Status != tool.StatusSucceeded || !doc.Success || doc.Worker != "test" || doc.Attempt != 1 ||
			string(doc.Output) != `"done `+rid(i)+`"` {
			t.Fatalf("result: %s", doc.Raw)
		}
	}
	p.empty()
	if n := p.messages("TOOL_RESULTS"); n != 50 {
		t.Errorf("%d results", n)
	}
}

func TestBacklogFromBeforeTheWorkerIsServed(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	p.sendAll(2000, func(i int) *tool.Request {
		r := request([]string{"a", "b", "c"}[i%3], rid(i))
		r.Priority = tool.Priorities[i%len(tool.Priorities)]
		return r
	})
	start(t, s, succeed, nil)
	p.empty()
	if n := p.messages("TOOL_RESULTS"); n != 2000 {
		t.Errorf("%d results", n)
	}
}
