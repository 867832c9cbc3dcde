package queue_test

import (
	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
)

func natsMsg(m event.Message) *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Header: nats.Header{}, Data: m.Data}
	for name, values := range m.Header {
		msg.Header[name] = values
	}
	return msg
}
