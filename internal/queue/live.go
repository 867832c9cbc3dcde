package queue

import (
	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
)

// Live is where live events go. It implements consume.Live: they are sent
// without waiting for their stream, and lost while the connection is.
type Live struct{ client *Client }

// Live is where the fleet's live events go.
func (c *Client) Live() Live { return Live{c} }

// Publish implements consume.Live.
func (l Live) Publish(m event.Message) {
	msg := &nats.Msg{Subject: m.Subject, Header: headerOf(m.Header), Data: m.Data}
	if err := l.client.nc.PublishMsg(msg); err != nil {
		l.client.log.Debug("publish live event", "error", err)
	}
}
