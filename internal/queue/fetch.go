package queue

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
)

// Fetch implements consume.Source.
func (s *Source) Fetch(lane consume.Lane, n int, wait time.Duration, deliver func(consume.Message)) (int, error) {
	l := s.get(lane)
	consumer, err := s.open(lane, l)
	if err != nil {
		return 0, err
	}
	got, err := s.fetch(consumer, l, n, wait, deliver)
	if !isVanished(err) {
		return got, err
	}
	l.vanished()
	if got > 0 {
		return got, nil
	}
	if consumer, err = s.open(lane, l); err != nil {
		return 0, err
	}
	return s.fetch(consumer, l, n, wait, deliver)
}

func (s *Source) fetch(consumer jetstream.Consumer, l *laneConsumer, n int, wait time.Duration, deliver func(consume.Message)) (int, error) {
	var batch jetstream.MessageBatch
	var err error
	if wait > 0 {
		batch, err = consumer.Fetch(n, jetstream.FetchMaxWait(wait))
	} else {
		batch, err = consumer.FetchNoWait(n)
	}
	if err != nil {
		return 0, err
	}
	got := 0
	for msg := range batch.Messages() {
		m, err := s.message(l, msg)
		if err != nil { // no reply subject: it cannot be settled, and cannot come from a consumer
			s.client.log.Error("message without delivery", "subject", msg.Subject(), "error", err)
			continue
		}
		got++
		deliver(m)
	}
	if err := batch.Error(); err != nil && !isFull(err) {
		return got, err
	}
	return got, nil
}

// isFull reports whether the server hands out no more, because enough are
// being worked on or asked for: there is nothing to fetch just now.
func isFull(err error) bool {
	s := strings.ToLower(err.Error())
	return strings.Contains(s, "maxackpending") || strings.Contains(s, "maxwaiting")
}
