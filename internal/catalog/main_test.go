package catalog

import (
	"context"
	"net"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds every wait of the tests.
const deadline = 20 * time.Second

// testServer is a JetStream server of its own that can be restarted.
type testServer struct {
	t       testing.TB
	options *natsserver.Options
	server  *natsserver.Server
}

func startServer(t testing.TB) *testServer {
	t.Helper()
	s := &testServer{t: t, options: &natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	}}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	s.t.Helper()
	server, err := natsserver.NewServer(s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	server.Start()
	if !server.ReadyForConnections(deadline) {
		s.t.Fatal("the server does not answer")
	}
	s.server = server
	s.options.Port = server.Addr().(*net.TCPAddr).Port // the same after a restart
}

func (s *testServer) stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// connect returns a connection that waits for its server for ever.
func (s *testServer) connect() jetstream.JetStream {
	s.t.Helper()
	nc, err := nats.Connect(s.server.ClientURL(), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

const testBucket = "tool_catalog"

// bucket makes the catalogue's bucket.
func (s *testServer) bucket(js jetstream.JetStream) jetstream.KeyValue {
	s.t.Helper()
	kv, err := js.CreateKeyValue(s.t.Context(), jetstream.KeyValueConfig{Bucket: testBucket, History: 5})
	if err != nil {
		s.t.Fatal(err)
	}
	return kv
}

// eventually waits until ok, asking again and again.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("still not true: %s", what)
		case <-tick.C:
		}
	}
}
