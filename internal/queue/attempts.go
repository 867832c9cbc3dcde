package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
)

// Attempts is the fleet's book of starts (PROTOCOL.md section 6.1), in its
// key-value bucket. It implements consume.Attempts.
type Attempts struct{ client *Client }

// Attempts is the book of the fleet.
func (c *Client) Attempts() *Attempts { return &Attempts{c} }

// headerWrite names one write of a record.
const headerWrite = "Tool-Write"

func attemptsKey(project, id string) string { return project + "." + id }

// Load reads the record of a request and its revision, 0 when there is none.
func (a *Attempts) Load(ctx context.Context, project, id string) (consume.Record, uint64, error) {
	var rec consume.Record
	var rev uint64
	err := a.client.persist(ctx, "read attempts", func(ctx context.Context) error {
		rec, rev = consume.Record{}, 0
		// The bucket's own get may be answered by a replica that lags.
		m, err := a.client.fromLeader(ctx, "KV_"+a.client.Names.AttemptsBucket(), selection{LastOf: a.subject(project, id)})
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		rev = m.Sequence
		if m.Get("KV-Operation") != "" { // deleted by hand
			return nil
		}
		if err := json.Unmarshal(m.Data, &rec); err != nil {
			// Somebody scribbled in the book. The request must not hang on it,
			// nor be started twice if that is forbidden.
			a.client.log.Error("record of attempts is unreadable", "key", attemptsKey(project, id), "error", err)
			rec = consume.Record{Open: 1, Started: true}
		}
		return nil
	})
	return rec, rev, err
}

// Save writes a record if its revision is still rev (0: there is none) and
// returns the new one; consume.ErrConflict when somebody wrote meanwhile.
func (a *Attempts) Save(ctx context.Context, project, id string, rec consume.Record, rev uint64) (uint64, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	// Two workers may want to write the very same: a name of this write tells
	// an answer that was lost from somebody else's success.
	name := rand.Text()
	var next uint64
	err = a.client.persist(ctx, "write attempts", func(ctx context.Context) error {
		msg := &nats.Msg{Subject: a.subject(project, id), Header: nats.Header{headerWrite: {name}}, Data: data}
		ack, err := a.client.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(rev))
		if err == nil {
			next = ack.Sequence
			return nil
		}
		if !contested(err) {
			return err
		}
		m, readErr := a.client.fromLeader(ctx, "KV_"+a.client.Names.AttemptsBucket(), selection{LastOf: a.subject(project, id)})
		switch {
		case readErr == nil && m.Get(headerWrite) == name:
			next = m.Sequence
			return nil
		case readErr == nil && m.Sequence != rev:
			return permanent{consume.ErrConflict}
		case errors.Is(readErr, ErrNotFound) && rev != 0:
			return permanent{consume.ErrConflict}
		case errors.Is(readErr, ErrNotFound):
			return errStillAbsent
		case readErr != nil:
			return readErr
		}
		return errStillAbsent
	})
	return next, err
}

func (a *Attempts) subject(project, id string) string {
	return "$KV." + a.client.Names.AttemptsBucket() + "." + attemptsKey(project, id)
}
