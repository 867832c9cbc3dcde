package command

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/toolworker/toolworker/internal/queue"
)

// Connection are the flags that say how NATS is reached, but for the server's
// address, whose default differs between the programs.
type Connection struct {
	NATSCreds string `name:"nats-creds" group:"nats" type:"existingfile" placeholder:"FILE" help:"Credentials file of the NATS user."`
	NATSCA    string `name:"nats-ca" group:"nats" type:"existingfile" placeholder:"FILE" help:"PEM file of the authorities that sign the server's certificate."`
	NATSCert  string `name:"nats-cert" group:"nats" type:"existingfile" placeholder:"FILE" and:"nats-client" help:"PEM file of the client's certificate."`
	NATSKey   string `name:"nats-key" group:"nats" type:"existingfile" placeholder:"FILE" and:"nats-client" help:"PEM file of the key of the client's certificate."`

	DataDir       string `name:"data-dir" group:"nats" default:"${data_dir}" placeholder:"DIR" help:"Directory of the embedded server: its streams, and the token that it asks for (${default})."`
	SubjectPrefix string `name:"subject-prefix" group:"nats" default:"${subject_prefix}" placeholder:"PREFIX" help:"First token of every subject; another prefix is another fleet (${default})."`
	StreamPrefix  string `name:"stream-prefix" group:"nats" default:"${stream_prefix}" placeholder:"PREFIX" help:"First part of every stream's name, in lower case of every bucket's (${default})."`
}

// Validate names what cannot be.
func (c *Connection) Validate() error {
	if c.DataDir == "" || c.SubjectPrefix == "" || c.StreamPrefix == "" {
		return errors.New("--data-dir, --subject-prefix and --stream-prefix must not be empty")
	}
	return c.Names().Validate()
}

// Names are the names of the fleet.
func (c *Connection) Names() queue.Names {
	return queue.Names{SubjectPrefix: c.SubjectPrefix, StreamPrefix: c.StreamPrefix}
}

// Options are the options of a connection to the server at address, called
// name there.
func (c *Connection) Options(address, name string) (queue.Options, error) {
	if err := checkURL(address); err != nil {
		return queue.Options{}, err
	}
	token, err := c.token(address)
	return queue.Options{
		URL: address, Name: name, Names: c.Names(), Token: token,
		Creds: c.NATSCreds, CA: c.NATSCA, Cert: c.NATSCert, Key: c.NATSKey,
	}, err
}

// token finds the token of an embedded server. One found in the default place
// is offered to this machine only, never to a server elsewhere.
func (c *Connection) token(address string) (string, error) {
	if c.NATSCreds != "" || c.NATSCert != "" || c.DataDir == queue.DefaultDataDir && !local(address) {
		return "", nil
	}
	token, err := queue.ReadToken(c.DataDir)
	if errors.Is(err, queue.ErrNotFound) {
		return "", nil
	}
	return token, err
}

// local reports whether every server of a list is on this machine and has no
// credentials in its URL.
func local(address string) bool {
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.User != nil {
			return false
		}
		ip := net.ParseIP(u.Hostname())
		if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// checkURL refuses what is no list of server URLs. The value is not quoted:
// it may hold a password.
func checkURL(address string) error {
	for one := range strings.SplitSeq(address, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" {
			return Usagef("--nats-url: expected nats://HOST:PORT, several separated by commas")
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return Usagef("--nats-url: scheme %q: expected nats, tls, ws or wss", u.Scheme)
		}
	}
	return nil
}

// ConnectError gives an error of queue.Connect, or of a later call, the exit
// code Unreachable and a hint where the server is the reason.
func ConnectError(err error) error {
	switch {
	case errors.Is(err, queue.ErrRefused):
		return (&Error{Code: Unreachable, Err: err}).WithHint("check --nats-creds, or --data-dir where the embedded server's token is")
	case errors.Is(err, queue.ErrUnreachable):
		return (&Error{Code: Unreachable, Err: err}).WithHint("is a server running there? start one with: worker run")
	case errors.Is(err, queue.ErrNoTopology):
		return &Error{Code: Unreachable, Err: err}
	}
	return err
}
