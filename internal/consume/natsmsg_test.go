package consume_test

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/event"
)

func natsMsg(m event.Message, id string) *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Header: nats.Header{}, Data: m.Data}
	for name, values := range m.Header {
		msg.Header[name] = values
	}
	if id != "" {
		msg.Header.Set(jetstream.MsgIDHeader, id)
	}
	return msg
}

type natsMessage = nats.Msg
