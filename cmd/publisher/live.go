package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// liveBacklog is how many messages may wait to be shown.
const liveBacklog = 65536

// feed receives live events and announcements of results, in their order. It
// is made before the request is sent, so that it misses nothing.
type feed struct {
	messages chan *nats.Msg
	subs     []*nats.Subscription
}

// listen subscribes to subjects, which may hold wildcards.
func listen(client *queue.Client, subjects ...string) (*feed, error) {
	f := &feed{messages: make(chan *nats.Msg, liveBacklog)}
	for _, subject := range subjects {
		sub, err := client.Conn().ChanSubscribe(subject, f.messages)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		f.subs = append(f.subs, sub)
	}
	if err := client.Conn().FlushTimeout(connectTimeout); err != nil {
		f.close()
		return nil, fmt.Errorf("subscribe to live events: %w", err)
	}
	return f, nil
}

func (f *feed) close() {
	for _, sub := range f.subs {
		_ = sub.Unsubscribe()
	}
}

// follow shows the live events of one request until its result is announced
// or ctx is over, and reports whether output was among them.
func (s *session) follow(ctx context.Context, f *feed, resultSubject string) (seen bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return seen, nil
		case m := <-f.messages:
			if m.Subject == resultSubject {
				return seen, nil
			}
			live, err := event.DecodeLive(event.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
			if err != nil {
				continue // a later worker's: it says nothing to us
			}
			seen = seen || live.Output != nil
			if err := s.showLive(live); err != nil {
				return seen, err
			}
		}
	}
}

// showLive shows one live event.
func (s *session) showLive(live *event.Live) error {
	if s.JSON {
		return s.printJSON(liveLine(live))
	}
	style := terminal.NewStyle(s.Err)
	var err error
	switch {
	case live.Output != nil && live.Output.Stream == "stderr":
		err = writeChunk(s.Err, live.Output.Text)
	case live.Output != nil:
		err = writeChunk(s.Out, live.Output.Text)
	case live.Started != nil:
		_, err = fmt.Fprintln(s.Err, style.Faint(fmt.Sprintf("started on %s, worker %s", live.Started.Environment, terminal.Line(live.Started.Worker, 140))))
	case live.Retrying != nil:
		delay := time.Duration(live.Retrying.DelayMS * float64(time.Millisecond))
		_, err = fmt.Fprintln(s.Err, style.Odd(fmt.Sprintf("attempt %d failed (%s), again in %s", live.Retrying.Attempt, live.Retrying.Error.Code, short(delay))))
	}
	return err
}

// writeChunk writes a piece of a tool's output.
func writeChunk(w io.Writer, text string) error {
	if terminal.Is(w) {
		text = printable([]byte(text))
	}
	_, err := io.WriteString(w, text)
	return err
}

// liveLine is a live event as one line of JSON; the member event names its kind.
func liveLine(live *event.Live) any {
	switch {
	case live.Started != nil:
		return struct {
			Event string `json:"event"`
			*event.Started
		}{"started", live.Started}
	case live.Output != nil:
		return struct {
			Event string `json:"event"`
			*event.Output
		}{"output", live.Output}
	}
	return struct {
		Event string `json:"event"`
		*event.Retrying
	}{"retrying", live.Retrying}
}
