package queuetest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolworker/toolworker/internal/queue"
)

// clusterReady bounds the election of leaders.
const clusterReady = 60 * time.Second

// Cluster is three JetStream servers that replicate to each other.
type Cluster struct {
	t       testing.TB
	options []*server.Options
	servers []*server.Server // nil: stopped
}

// StartCluster starts three servers. Their end is the test's.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t, servers: make([]*server.Server, 3)}
	var routes []*url.URL
	var ports []int
	for range c.servers {
		port := freePort(t)
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	for i := range c.servers {
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprint("test-", i), Host: "127.0.0.1", Port: freePort(t),
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]}, Routes: routes,
			NoSigs: true, NoLog: true,
		})
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.stop(i)
		}
	})
	Until(t, "the cluster has a leader", func() bool {
		return slices.ContainsFunc(c.servers, func(s *server.Server) bool { return s.JetStreamIsLeader() })
	})
	return c
}

// Fleet connects to the cluster and makes a replicated topology.
func (c *Cluster) Fleet() *queue.Client {
	c.t.Helper()
	var urls []string
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://%s:%d", o.Host, o.Port))
	}
	client, err := queue.Connect(context.Background(), queue.Options{URL: strings.Join(urls, ","), Wait: true, Log: Log(c.t)})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(context.Background(), clusterReady)
	defer cancel()
	for {
		_, err := client.Ensure(ctx, queue.Topology{Names: client.Names, Replicas: 3})
		if err == nil {
			return client
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // no leader yet
	}
}

// RestartLeader stops the server that leads a stream, and starts it again
// after pause. It returns when the server is back.
func (c *Cluster) RestartLeader(stream string, pause time.Duration) {
	c.t.Helper()
	var leader int
	Until(c.t, "the stream has a leader", func() bool {
		leader = slices.IndexFunc(c.servers, func(s *server.Server) bool {
			return s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream)
		})
		return leader >= 0
	})
	c.stop(leader)
	time.Sleep(pause)
	c.start(leader)
}

func (c *Cluster) start(i int) {
	c.t.Helper()
	opts := *c.options[i]
	s, err := server.NewServer(&opts)
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(ready) {
		c.t.Fatal("server is not ready")
	}
	c.servers[i] = s
}

func (c *Cluster) stop(i int) {
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
}

// freePort is a port that was free a moment ago: routes have to be known
// before their servers run.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
