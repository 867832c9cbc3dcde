package queue_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

func TestEnsureCreatesWhatTheFleetNeeds(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Connect(queue.Options{})
	topology := queue.Topology{Names: c.Names}
	diffs, err := c.Diff(t.Context(), topology)
	if err != nil || len(diffs) != 9 || !diffs[0].Missing() || !diffs[0].Fatal {
		t.Fatalf("differences on an empty server: %v, %v", diffs, err)
	}
	if mild, err := c.Ensure(t.Context(), topology); err != nil || len(mild) > 0 {
		t.Fatalf("ensure: %v, %v", mild, err)
	}
	if diffs, err = c.Diff(t.Context(), topology); err != nil || len(diffs) > 0 {
		t.Fatalf("differences after ensure: %v, %v", diffs, err)
	}

	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	if got := strings.Join(cfg.Subjects, " "); got != "tools.request.default.high.* tools.request.default.low.* tools.request.default.normal.*" {
		t.Errorf("subjects %s", got)
	}
	if cfg.Retention != jetstream.WorkQueuePolicy || cfg.Storage != jetstream.FileStorage || cfg.Discard != jetstream.DiscardNew ||
		!cfg.DiscardNewPerSubject || cfg.Duplicates != 10*time.Minute || cfg.MaxMsgSize != 512<<10 ||
		cfg.MaxMsgs != 1_000_000 || cfg.MaxBytes != 4<<30 || cfg.MaxMsgsPerSubject != 100_000 || cfg.MaxConsumers != 10_000 {
		t.Errorf("requests stream: %+v", cfg)
	}
	if r := cfg.RePublish; r == nil || r.Source != "tools.request.>" || r.Destination != "tools.wake.>" || !r.HeadersOnly {
		t.Errorf("republish: %+v", cfg.RePublish)
	}
	for name, want := range map[string]time.Duration{
		"TOOL_RESULTS": 7 * 24 * time.Hour, "TOOL_EVENTS": time.Hour, "TOOL_DEAD_LETTERS": 30 * 24 * time.Hour,
		"TOOL_CANCELLATIONS": 30 * 24 * time.Hour, "KV_tool_attempts": 30 * 24 * time.Hour, "KV_tool_workers": 30 * time.Second,
		"KV_tool_catalog": 0, "OBJ_tool_payloads": 7 * 24 * time.Hour,
	} {
		s, err := c.JetStream().Stream(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := s.CachedInfo().Config.MaxAge; got != want {
			t.Errorf("%s: max age %s, expected %s", name, got, want)
		}
	}
}

func TestEnsureAddsPoolsAtOnce(t *testing.T) {
	s := queuetest.Start(t)
	var workers sync.WaitGroup
	pools := []string{"gpu", "arm", "slow", "fast"}
	for _, pool := range pools {
		c := s.Connect(queue.Options{})
		workers.Go(func() {
			if _, err := c.Ensure(t.Context(), queue.Topology{Names: c.Names, Pools: []string{pool}}); err != nil {
				t.Errorf("pool %s: %v", pool, err)
			}
		})
	}
	workers.Wait()
	c := s.Connect(queue.Options{})
	if err := c.AddPool(t.Context(), "more"); err != nil {
		t.Fatal(err)
	}
	// A worker whose pool another one's update took away notices at its next sweep.
	if _, err := c.Ensure(t.Context(), queue.Topology{Names: c.Names, Pools: append(pools, "more")}); err != nil {
		t.Fatal(err)
	}
	if diffs, err := c.Diff(t.Context(), queue.Topology{Names: c.Names, Pools: append(pools, "more")}); err != nil || len(diffs) > 0 {
		t.Fatalf("differences: %v, %v", diffs, err)
	}
	if err := c.AddPool(t.Context(), "no.pool"); err == nil || !strings.Contains(err.Error(), `pool "no.pool"`) {
		t.Fatalf("pool with a dot: %v", err)
	}
}

func TestEnsureRefusesAStreamThatLosesRequests(t *testing.T) {
	for _, subjects := range [][]string{
		{"tools.request.default.high.*", "tools.request.default.normal.*", "tools.request.default.low.*"},
		{"tools.request.>"},
	} {
		s := queuetest.Start(t)
		c := s.Connect(queue.Options{})
		if _, err := c.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "TOOL_REQUESTS", Subjects: subjects, MaxMsgs: 10,
		}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Ensure(t.Context(), queue.Topology{Names: c.Names})
		if err == nil || !strings.Contains(err.Error(), "TOOL_REQUESTS") || !strings.Contains(err.Error(), "hint: publisher topology") {
			t.Errorf("subjects %v: %v", subjects, err)
		}
		var wrong *queue.TopologyError
		if len(subjects) == 3 && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), "retention is Limits, expected WorkQueue")) {
			t.Errorf("limits stream: %v", err)
		}
	}
}

func TestApplyMendsWhatCanBeMended(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	topology := queue.Topology{Names: c.Names}
	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgsPerSubject, cfg.MaxMsgs, cfg.RePublish, cfg.Duplicates = 7, 8, nil, time.Minute
	if _, err := c.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	diffs, err := c.Diff(t.Context(), topology)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range diffs {
		lines = append(lines, d.String())
	}
	for _, want := range []string{
		"stream TOOL_REQUESTS: max messages is 8, expected 1000000",
		"stream TOOL_REQUESTS: max messages per subject is 7, expected 100000",
		"stream TOOL_REQUESTS: republish is not set, expected tools.request.> to tools.wake.>, headers only",
		"stream TOOL_REQUESTS: duplicate window is 1m0s, expected 10m0s",
	} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no difference %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	var wrong *queue.TopologyError
	if _, err := c.Ensure(t.Context(), topology); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "republish") {
		t.Errorf("ensure without wake-ups: %v", err)
	}
	if left, err := c.Apply(t.Context(), topology); err != nil || len(left) > 0 {
		t.Fatalf("apply: %v, %v", left, err)
	}
	if mild, err := c.Ensure(t.Context(), topology); err != nil || len(mild) > 0 {
		t.Fatalf("ensure: %v, %v", mild, err)
	}
}

func TestShowWhatIsThere(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet("default", "gpu")
	parts, err := c.Show(t.Context(), queue.Topology{Names: c.Names})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if !p.Present || p.Replicas != 1 || len(p.Differences) > 0 {
			t.Errorf("%+v", p)
		}
	}
	if len(parts) != 9 || parts[0].Name != "TOOL_REQUESTS" || len(parts[0].Subjects) != 6 {
		t.Errorf("parts: %+v", parts)
	}
}

func TestFleetsShareAServer(t *testing.T) {
	s := queuetest.Start(t)
	for _, names := range []queue.Names{{}, {SubjectPrefix: "acme.tools", StreamPrefix: "ACME"}} {
		c := s.Connect(queue.Options{Names: names})
		if _, err := c.Ensure(t.Context(), queue.Topology{Names: names}); err != nil {
			t.Fatalf("%+v: %v", names, err)
		}
	}
	c := s.Connect(queue.Options{})
	if _, err := c.JetStream().KeyValue(t.Context(), "acme_catalog"); err != nil {
		t.Error(err)
	}
}

func TestTopologyRefusesNonsense(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Connect(queue.Options{})
	for want, topology := range map[string]queue.Topology{
		`subject prefix "a b"`: {Names: queue.Names{SubjectPrefix: "a b"}},
		`stream prefix "A.B"`:  {Names: queue.Names{StreamPrefix: "A.B"}},
		`pool ""`:              {Pools: []string{""}},
		"replicas -1":          {Replicas: -1},
	} {
		if _, err := c.Ensure(t.Context(), topology); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %s", topology, err, want)
		}
	}
}
