package consume_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestCancelThroughTheServer(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	runs := newStarts()
	p.sendAll(600, func(i int) *tool.Request { return request("p", rid(i)) })
	start(t, s, func(ctx context.Context, r *tool.Request) *tool.Result {
		res := runs.run(ctx, r)
		if errors.Is(context.Cause(ctx), tool.ErrCancelled) {
			res.Error, res.Output = tool.Errorf(tool.Cancelled, "cancelled"), nil
		}
		return res
	}, func(c *consume.Config) { c.Slots = 2 })
	queuetest.Until(t, "the slots are busy", func() bool { return runs.count(all) == 2 })

	for id, limit := range map[string]time.Duration{rid(0): time.Second, rid(590): 5 * time.Second, rid(300): 5 * time.Second} {
		began := time.Now()
		if err := p.Cancel(t.Context(), "p", id); err != nil {
			t.Fatal(err)
		}
		if doc := p.result("p", id); doc.Status != tool.StatusCancelled {
			t.Errorf("%s", doc.Raw)
		} else if took := time.Since(began); took > 3*limit {
			t.Errorf("%s answered after %s", id, took)
		}
	}
	runs.finish(10_000)
	p.empty()
	if got := p.messages("TOOL_RESULTS"); got != 600 {
		t.Errorf("%d results of 600 requests", got)
	}
}

func TestUnreadableMessagesThroughTheServer(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	start(t, s, succeed, nil)
	for _, body := range []string{"", "{", "null", strings.Repeat("x", 400<<10), `{"specversion":"1.0"}`, "\x00\xff"} {
		if _, err := p.JetStream().PublishMsg(t.Context(), natsMsg(event.Message{Subject: "tools.request.default.low.p", Data: []byte(body)}, "")); err != nil {
			t.Fatal(err)
		}
	}
	p.send(request("p", "good"))
	p.result("p", "good")
	p.empty()
	n := 0
	if err := p.DeadLetters(t.Context(), "p", func(d queue.DeadLetter) bool {
		n++
		if d.Code != tool.InvalidRequest || d.Pool != "default" || d.Deliveries != 1 || d.Reason == "" {
			t.Errorf("%+v", d)
		}
		return true
	}); err != nil || n != 6 {
		t.Errorf("%d dead letters, %v", n, err)
	}
}

func TestClaimChecksBothWays(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	large := strings.Repeat("y", 600<<10)
	start(t, s, func(_ context.Context, r *tool.Request) *tool.Result {
		res := resultOf(r, nil)
		res.Output = tool.Text(large + r.Inline.Code[:5])
		return res
	}, nil)
	r := request("p", "a")
	r.Inline.Code = "code " + strings.Repeat("x", 1<<20)
	data, err := event.RequestData(r)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := p.Inputs().Put(t.Context(), "p", "a", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	_, sum, _ := strings.Cut(ref, "sha256=")
	m, err := event.EncodeReferenced(r, "tools", p.Names.InputsStore("p"), "a", sum)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), "p", "a", m); err != nil {
		t.Fatal(err)
	}
	doc := p.result("p", "a")
	moved, ok := doc.Refs["output"]
	if !doc.Success || !ok || moved.SizeBytes != int64(len(large)+5) {
		t.Fatalf("success %v, error %v, refs %v", doc.Success, doc.Error, doc.Refs)
	}
	object, err := p.Payloads().Open(t.Context(), moved)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = object.Close() }()
	var got bytes.Buffer
	if _, err := got.ReadFrom(object); err != nil || got.String() != large+"code " {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

func TestResumedProjectIsServed(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	r := newRules()
	r.pause("project p", true)
	start(t, s, succeed, func(c *consume.Config) { c.Rules = r })
	p.send(request("p", "a"))
	p.send(request("q", "b"))
	p.result("q", "b")
	if _, err := p.Result(t.Context(), "p", "a"); err == nil {
		t.Error("a paused project is served")
	}
	r.pause("project p", false)
	p.result("p", "a")
}

func TestAnsweredRequestIsNotRunAgain(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	r := request("p", "a")
	r.Time = time.Time{}
	if _, err := p.StoreResult(t.Context(), "p", "a", event.Message{Subject: "tools.result.p.a"}); err != nil {
		t.Fatal(err)
	}
	p.send(r)
	start(t, s, func(ctx context.Context, r *tool.Request) *tool.Result {
		t.Error("an answered request runs")
		return succeed(ctx, r)
	}, nil)
	p.empty()
}

func TestIdleLanesAreForgotten(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	w := start(t, s, succeed, nil)
	p.sendAll(60, func(i int) *tool.Request { return request(rid(i), rid(i)) })
	p.empty()
	queuetest.Until(t, "everything is settled", func() bool { return w.Running() == 0 && w.Lanes() == 0 })
}
