package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// subjects counts the messages of a stream by subject. A missing stream is
// ErrNoTopology.
func (c *Client) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	info, err := c.streamInfo(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

func (c *Client) streamInfo(ctx context.Context, stream, filter string) (*jetstream.StreamInfo, error) {
	s, err := c.stream(ctx, stream)
	if err == nil {
		var info *jetstream.StreamInfo
		if info, err = s.Info(ctx, jetstream.WithSubjectFilter(filter)); err == nil {
			return info, nil
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, permanent{fmt.Errorf("%w: %s", ErrNoTopology, stream)}
	}
	return nil, fmt.Errorf("look up stream %s: %w", stream, err)
}

// stream is the handle of a stream. Handles hold the name only, so one of a
// stream that was made anew is as good.
func (c *Client) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if s, ok := c.streams.Load(name); ok {
		return s.(jetstream.Stream), nil
	}
	s, err := c.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	c.streams.Store(name, s)
	return s, nil
}
