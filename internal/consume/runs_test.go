package consume

import (
	"context"
	"errors"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestRuns(t *testing.T) {
	r := newRuns()
	k := requestKey{"p", "a"}
	run, end, ok := r.begin(context.Background(), k)
	if !ok || run.Err() != nil {
		t.Fatal("a request cannot be taken in hand")
	}
	if _, _, again := r.begin(context.Background(), k); again {
		t.Error("it is in hand twice")
	}
	if r.stop(requestKey{"q", "a"}, tool.ErrCancelled) || run.Err() != nil {
		t.Error("another project's request was stopped")
	}
	if !r.stop(k, tool.ErrCancelled) || !errors.Is(context.Cause(run), tool.ErrCancelled) {
		t.Errorf("stopped with the cause %v", context.Cause(run))
	}
	end()
	if r.stop(k, tool.ErrCancelled) {
		t.Error("a request that has ended was stopped")
	}
}

func TestRunsThatBeginAfterTheEnd(t *testing.T) {
	r := newRuns()
	before, endBefore, _ := r.begin(context.Background(), requestKey{"p", "a"})
	defer endBefore()
	r.stopAll(tool.ErrDrained)
	after, endAfter, ok := r.begin(context.Background(), requestKey{"p", "b"})
	if !ok {
		t.Fatal("not taken in hand")
	}
	defer endAfter()
	for _, run := range []context.Context{before, after} {
		if !errors.Is(context.Cause(run), tool.ErrDrained) {
			t.Errorf("cause %v", context.Cause(run))
		}
	}
}
