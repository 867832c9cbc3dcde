package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

// Status is the queue at one moment.
type Status struct {
	Lanes   []LaneStatus `json:"lanes"`
	Streams []Part       `json:"streams"`
	Workers []Worker     `json:"workers"`
}

// LaneStatus is one queue of requests. Waiting and Running make up what is
// stored; Running counts what was handed out and not settled, which includes
// requests that wait for a retry.
type LaneStatus struct {
	Pool        string        `json:"pool"`
	Priority    tool.Priority `json:"priority"`
	Project     string        `json:"project"`
	Waiting     uint64        `json:"waiting"`
	Running     uint64        `json:"running"`
	Redelivered int           `json:"redelivered"`
	Oldest      time.Time     `json:"oldest,omitzero"`   // when its oldest request was stored
	Consumer    string        `json:"consumer,omitzero"` // "" while nobody serves it
}

// Status reads the state of the queue: its lanes with requests or consumers,
// by pool, priority and project; the streams; the workers.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	stream := c.Names.RequestsStream()
	counts, err := c.subjects(ctx, stream, c.Names.RequestSubject("*", "*", "*"))
	if err != nil {
		return nil, err
	}
	lanes := map[string]*LaneStatus{}
	lane := func(subject string) *LaneStatus {
		tokens, err := c.Names.Split(subject, "request", 3)
		if err != nil {
			return nil
		}
		if lanes[subject] == nil {
			lanes[subject] = &LaneStatus{Pool: tokens[0], Priority: tool.Priority(tokens[1]), Project: tokens[2]}
		}
		return lanes[subject]
	}
	for subject, n := range counts {
		if l := lane(subject); l != nil {
			l.Waiting = n
			l.Oldest = c.oldest(ctx, subject)
		}
	}
	if err := c.consumers(ctx, func(info *jetstream.ConsumerInfo) {
		if l := lane(info.Config.FilterSubject); l != nil {
			l.Consumer, l.Redelivered = info.Name, info.NumRedelivered
			l.Running = min(uint64(info.NumAckPending), l.Waiting)
			l.Waiting -= l.Running
		}
	}); err != nil {
		return nil, err
	}
	status := &Status{Lanes: make([]LaneStatus, 0, len(lanes))}
	for _, l := range lanes {
		status.Lanes = append(status.Lanes, *l)
	}
	slices.SortFunc(status.Lanes, func(a, b LaneStatus) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(rank(a.Priority), rank(b.Priority)), cmp.Compare(a.Project, b.Project))
	})
	if status.Streams, err = c.Show(ctx, Topology{Names: c.Names}); err != nil {
		return nil, err
	}
	if status.Workers, err = c.Workers(ctx); err != nil && !errors.Is(err, ErrNoTopology) {
		return nil, err
	}
	return status, nil
}

// Purge removes the requests of a project that wait, in all pools and
// priorities, and returns how many. They get no result.
func (c *Client) Purge(ctx context.Context, project string) (uint64, error) {
	if err := tool.CheckName("project", project); err != nil {
		return 0, err
	}
	filter := c.Names.RequestSubject("*", "*", project)
	counts, err := c.subjects(ctx, c.Names.RequestsStream(), filter)
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, count := range counts {
		n += count
	}
	s, err := c.stream(ctx, c.Names.RequestsStream())
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(filter))
	}
	if err != nil {
		return 0, fmt.Errorf("purge project %s: %w", project, err)
	}
	return n, nil
}

// oldest is when the first message of a subject was stored; zero when it is
// gone meanwhile.
func (c *Client) oldest(ctx context.Context, subject string) time.Time {
	m, err := c.fromLeader(ctx, c.Names.RequestsStream(), selection{Sequence: 1, NextOf: subject})
	if err != nil {
		return time.Time{}
	}
	return m.Time
}

// consumers calls yield for each consumer of the requests stream.
func (c *Client) consumers(ctx context.Context, yield func(*jetstream.ConsumerInfo)) error {
	s, err := c.stream(ctx, c.Names.RequestsStream())
	if err != nil {
		return fmt.Errorf("list consumers: %w", err)
	}
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		yield(info)
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list consumers: %w", err)
	}
	return nil
}

func rank(p tool.Priority) int { return slices.Index(tool.Priorities[:], p) }
