package consume

import (
	"context"
	"sync"

	"github.com/toolworker/toolworker/internal/tool"
)

// requestKey names a request within the fleet.
type requestKey struct{ project, id string }

func keyOf(r *tool.Request) requestKey { return requestKey{r.Project, r.ID} }

// runs are the requests that this worker has in hand, so that cancellations
// and a drain find them.
type runs struct {
	mu      sync.Mutex
	cancel  map[requestKey]context.CancelCauseFunc
	stopped error // why everything ends, whenever it begins
}

func newRuns() *runs { return &runs{cancel: map[requestKey]context.CancelCauseFunc{}} }

// begin takes a request in hand; false when it is in hand already. The
// context ends with a cause when the request is stopped; end must be called.
func (r *runs) begin(ctx context.Context, key requestKey) (run context.Context, end func(), ok bool) {
	run, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, running := r.cancel[key]; running {
		cancel(nil)
		return nil, nil, false
	}
	if r.stopped != nil {
		cancel(r.stopped)
	}
	r.cancel[key] = cancel
	return run, func() {
		r.mu.Lock()
		delete(r.cancel, key)
		r.mu.Unlock()
		cancel(nil)
	}, true
}

// stop ends a request that is in hand, and reports whether it is.
func (r *runs) stop(key requestKey, cause error) bool {
	r.mu.Lock()
	cancel, ok := r.cancel[key]
	r.mu.Unlock()
	if ok {
		cancel(cause)
	}
	return ok
}

// stopAll ends every request that is in hand or is taken in hand later.
func (r *runs) stopAll(cause error) {
	r.mu.Lock()
	r.stopped = cause
	cancels := make([]context.CancelCauseFunc, 0, len(r.cancel))
	for _, cancel := range r.cancel {
		cancels = append(cancels, cancel)
	}
	r.mu.Unlock()
	for _, cancel := range cancels {
		cancel(cause)
	}
}
