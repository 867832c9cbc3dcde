package queue

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers tell apart.
var (
	// ErrIDTaken: a request with this project and id was published before.
	ErrIDTaken = errors.New("request id is already taken")
	// ErrQueueFull: the requests stream refuses more; nothing was stored.
	ErrQueueFull = errors.New("queue is full")
	// ErrUnknownPool: the requests stream takes no requests for this pool or priority.
	ErrUnknownPool = errors.New("no such pool or priority")
	// ErrTooLarge: the message is larger than the stream or the server takes.
	ErrTooLarge = errors.New("message is too large")
	// ErrRefused: the server refused the credentials or the permission.
	ErrRefused = errors.New("refused by the server")
	// ErrUnreachable: no server answered.
	ErrUnreachable = errors.New("server unreachable")
	// ErrNotFound: what was asked for is not stored (any more).
	ErrNotFound = errors.New("not found")
	// ErrNoTopology: a stream or bucket is missing on the server.
	ErrNoTopology = errors.New("streams are missing (hint: publisher topology apply)")
	// ErrNotAnEvent: a dead letter holds no CloudEvent and can only be replayed raw.
	ErrNotAnEvent = errors.New("dead letter holds no CloudEvent (hint: --raw replays it unchanged)")
)

// Error codes of the server that nats.go has no name for.
const (
	codeStorageFull            = 10047 // insufficient storage resources available
	codeMaxMsgs                = 10077 // stream store failed: the message says which limit
	codeDuplicateConflict      = 10158 // a message with the same id is being stored
	codeWrongLastSequence      = jetstream.JSErrCodeStreamWrongLastSequence
	codeWrongLastSequenceConst = jetstream.JSErrCodeStreamWrongLastSequenceConstant
)

// apiCode is the server's error code in err, 0 when there is none.
func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}

// transient reports whether the same call may succeed later: everything but
// an answer of the server that says no, and the end of ctx.
func transient(ctx context.Context, err error) bool {
	if errors.As(err, new(permanent)) {
		return false
	}
	if ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) {
		return false
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 || api.Code == 408 || api.Code == 429 || api.Code == 500
	}
	return true
}
