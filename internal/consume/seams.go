package consume

import (
	"context"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// Source is where requests come from.
type Source interface {
	// Watch calls mark for every lane of pools that has or may have messages,
	// again and again, until ctx ends: woken at once when one is announced,
	// not woken when it is seen in the queue.
	Watch(ctx context.Context, pools []string, mark func(lane Lane, woken bool))
	// Fetch asks for at most n messages of a lane and calls deliver for each
	// as it comes. It waits at most wait for the first one; 0 takes what is
	// there. Its end is the end of the request: nothing comes afterwards.
	Fetch(lane Lane, n int, wait time.Duration, deliver func(Message)) (got int, err error)
}

// Message is one delivery of a request.
type Message interface {
	Event() event.Message
	Delivery() Delivery
	// InProgress says that the message is still being worked on. It does not wait.
	InProgress() error
	// Ack acknowledges the message and waits for the server to confirm it,
	// as often as it takes, until ctx ends. ErrGone when the server no longer
	// knows the delivery: it may come again.
	Ack(ctx context.Context) error
	// Nak gives the message back, to be delivered again after delay. It does not wait.
	Nak(delay time.Duration) error
	// Term takes the message out of the queue without an answer; like Ack.
	Term(ctx context.Context) error
}

// Delivery is what the queue knows of a message.
type Delivery struct {
	Sequence uint64 // in the stream
	// Count is how often the message was delivered by its consumer; 1 at first.
	Count  uint64
	Stored time.Time
	// Doubtful: the consumer is newer than deliveries that the message may
	// have had, so Count 1 says nothing.
	Doubtful bool
}

// first reports whether nobody can have seen the message before.
func (d Delivery) first() bool { return d.Count <= 1 && !d.Doubtful }

// Executor runs a request. It always gives a result: failure is data.
// Result.Fault makes the message go back.
type Executor interface {
	Execute(ctx context.Context, r *tool.Request) *tool.Result
}

// Answers is where results are stored.
type Answers interface {
	// Encode makes the message of a result; it may move large members to a
	// store and can be called again after an error.
	Encode(ctx context.Context, r *tool.Result, req *tool.Request) (event.Message, error)
	// Store stores a result unless the request has one, as often as it takes
	// until ctx ends, and reports whether the stored one is m. An error while
	// ctx lives means that m can never be stored.
	Store(ctx context.Context, project, id string, m event.Message) (ours bool, err error)
	// Answered reports whether a request has a result.
	Answered(ctx context.Context, project, id string) (bool, error)
}

// DeadLetter is a request that is put aside.
type DeadLetter struct {
	Request    event.Message
	Lane       Lane
	Sequence   uint64 // of the request in its stream
	Deliveries uint64
	Code       tool.Code
	Reason     string
}

// DeadLetters is where requests are put aside.
type DeadLetters interface {
	// PutDeadLetter stores a dead letter once, as often as it takes until ctx ends.
	PutDeadLetter(ctx context.Context, d DeadLetter) error
}

// Inputs is where the data of claim checks lies.
type Inputs interface {
	// Fetch reads the object that ref names. An *tool.Error says why the
	// request is to be rejected; another error is ctx's.
	Fetch(ctx context.Context, ref *event.Reference) ([]byte, error)
}

// Cancellations are the requests that somebody cancelled.
type Cancellations interface {
	// Run learns of them until ctx ends, and calls heard for each new one.
	Run(ctx context.Context, heard func(project, id string)) error
	Cancelled(project, id string) bool
	// Forget drops one whose request is settled.
	Forget(project, id string)
}

// Queued is a request that is still in the queue.
type Queued struct {
	Request event.Message
	Lane    Lane
	// Remove takes it out of the queue, when its answer is stored.
	Remove func(ctx context.Context) error
}

// Finder looks for requests wherever they stand in the queue.
type Finder interface {
	// Find calls found for those requests of a project that are in the queue.
	Find(ctx context.Context, project string, ids map[string]struct{}, found func(id string, q Queued)) error
}

// Rules is what the operator lays down, as it is at the moment of asking.
type Rules interface {
	// Paused reports whether requests are held back; tool is "" where it is
	// not known yet or the code is inline.
	Paused(pool, project, tool string) bool
	// ProjectBound is how many requests of a project may run at once here; 0
	// when it has no bound of its own.
	ProjectBound(project string) int
	// Tool is the definition of a tool. It may ask where the catalogue is
	// kept for a name that it does not know.
	Tool(ctx context.Context, name string) (*tool.Definition, bool)
}

// Live is where live events go. Publish does not wait, and may lose them.
type Live interface {
	Publish(m event.Message)
}
