package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

// TestReplicatedFleet keeps the promises of a single server on three, while
// the leaders of its streams are stopped.
func TestReplicatedFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := queuetest.StartCluster(t)
	clients := []*queue.Client{cluster.Fleet(), cluster.Fleet(), cluster.Fleet()}

	t.Run("one of many racing results is stored", func(t *testing.T) {
		race(t, clients, 30)
	})
	t.Run("also while the leader goes", func(t *testing.T) {
		gone := make(chan struct{})
		go func() { defer close(gone); cluster.RestartLeader("TOOL_RESULTS", 200*time.Millisecond) }()
		race(t, clients, 30)
		<-gone
	})
	t.Run("attempts are counted", func(t *testing.T) {
		var workers sync.WaitGroup
		for _, c := range clients {
			workers.Go(func() {
				for done := 0; done < 10; {
					rec, rev, err := c.Attempts().Load(t.Context(), "p", "a")
					if err == nil {
						rec.Failed++
						_, err = c.Attempts().Save(t.Context(), "p", "a", rec, rev)
					}
					if err == nil {
						done++
					} else if !errors.Is(err, consume.ErrConflict) {
						t.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		if rec, _, err := clients[0].Attempts().Load(t.Context(), "p", "a"); err != nil || rec.Failed != 30 {
			t.Errorf("%+v, %v", rec, err)
		}
	})
	t.Run("requests are published and taken once", func(t *testing.T) {
		const n = 40
		gone := make(chan struct{})
		go func() { defer close(gone); cluster.RestartLeader("TOOL_REQUESTS", 200*time.Millisecond) }()
		for i := range n {
			if _, err := clients[i%3].Publish(t.Context(), "p", fmt.Sprint(i), message(lane, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		<-gone
		source := clients[0].Source(queue.Topology{Names: clients[0].Names}, 8)
		seen := map[string]int{}
		queuetest.Until(t, "all were taken", func() bool {
			_, err := source.Fetch(laneP, 8, time.Second, func(m consume.Message) {
				seen[string(m.Event().Data)]++
				if err := m.Ack(t.Context()); err != nil && !errors.Is(err, consume.ErrGone) {
					t.Error(err)
				}
			})
			return err == nil && len(seen) == n && requests(t, clients[0]) == 0
		})
		consumer, err := clients[0].JetStream().Consumer(t.Context(), "TOOL_REQUESTS", queue.ConsumerName("default", tool.Normal, "p"))
		if err != nil || len(consumer.CachedInfo().Cluster.Replicas) != 2 {
			t.Errorf("the consumer is not replicated as its stream is: %v", err)
		}
	})
}

// race lets all clients store a result for each of n requests.
func race(t *testing.T, clients []*queue.Client, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("%d-%d", time.Now().UnixNano(), i)
		var won atomic.Int32
		var racers sync.WaitGroup
		for k, c := range clients {
			racers.Go(func() {
				ours, err := c.StoreResult(t.Context(), "p", id, result(id, fmt.Sprint(k)))
				if err != nil {
					t.Error(err)
				}
				if ours {
					won.Add(1)
				}
			})
		}
		racers.Wait()
		if won.Load() != 1 {
			t.Fatalf("result %s: %d winners", id, won.Load())
		}
	}
}
