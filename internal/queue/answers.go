package queue

import (
	"context"
	"errors"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// Answers is where results are stored. It implements consume.Answers.
type Answers struct{ client *Client }

// Answers is where the fleet's results are stored.
func (c *Client) Answers() Answers { return Answers{c} }

var (
	_ consume.Answers       = Answers{}
	_ consume.Inputs        = Inputs{}
	_ consume.Attempts      = (*Attempts)(nil)
	_ consume.Cancellations = (*Cancellations)(nil)
	_ consume.Source        = (*Source)(nil)
	_ consume.DeadLetters   = (*Client)(nil)
	_ consume.Finder        = (*Client)(nil)
	_ consume.Live          = Live{}
	_ event.PayloadStore    = Payloads{}
)

// Encode implements consume.Answers.
func (a Answers) Encode(ctx context.Context, r *tool.Result, req *tool.Request) (event.Message, error) {
	return event.EncodeResult(ctx, r, req, a.client.Payloads(), a.client.Names.Prefix())
}

// Store implements consume.Answers.
func (a Answers) Store(ctx context.Context, project, id string, m event.Message) (ours bool, err error) {
	return a.client.StoreResult(ctx, project, id, m)
}

// Answered implements consume.Answers.
func (a Answers) Answered(ctx context.Context, project, id string) (bool, error) {
	return a.client.Answered(ctx, project, id)
}

// Fetch implements consume.Inputs: it reads from the store of the request's
// own project, whatever the reference names.
func (i Inputs) Fetch(ctx context.Context, ref *event.Reference) ([]byte, error) {
	if ref.Bucket != i.client.Names.InputsStore(ref.Project) {
		return nil, ref.Refuse("not the store of this project")
	}
	data, err := i.Get(ctx, ref.Project, ref.Object, ref.SHA256)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, ref.Refuse("not found")
	case errors.Is(err, ErrMismatch):
		return nil, ref.Refuse("its size or sha256 is not that of the dataref")
	}
	return data, err
}
