package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

// Bounds of the streams (PROTOCOL.md section 1).
const (
	// MaxRequestSize is the largest request message, headers included.
	MaxRequestSize = 512 << 10

	maxRequests           = 1_000_000
	maxRequestBytes       = 4 << 30
	maxRequestsPerSubject = 100_000
	maxConsumers          = 10_000

	requestDuplicates = 10 * time.Minute
	otherDuplicates   = 2 * time.Minute
	resultsAge        = 7 * 24 * time.Hour
	eventsAge         = time.Hour
	deadLettersAge    = 30 * 24 * time.Hour
	cancellationsAge  = 30 * 24 * time.Hour
	attemptsAge       = 30 * 24 * time.Hour
	inputsAge         = 7 * 24 * time.Hour
	workersAge        = 30 * time.Second
	catalogHistory    = 5
)

// Topology is what a fleet needs on the server.
type Topology struct {
	Names Names
	// Pools that requests are taken for, beside those that are there already;
	// none means tool.DefaultPool.
	Pools []string
	// Replicas of the streams and buckets that are created; 0 means 1.
	Replicas int
}

// Kind is what a part of the topology is.
type Kind string

// The kinds of parts.
const (
	KindStream Kind = "stream"
	KindBucket Kind = "bucket" // key-value
	KindStore  Kind = "store"  // objects
)

// part is one stream, bucket or object store as it is wanted.
type part struct {
	kind   Kind
	name   string
	stream jetstream.StreamConfig // the stream itself, or the one that backs it
	kv     jetstream.KeyValueConfig
	store  jetstream.ObjectStoreConfig
}

func (t Topology) pools() []string {
	if len(t.Pools) == 0 {
		return []string{tool.DefaultPool}
	}
	return t.Pools
}

func (t Topology) replicas() int { return cmp.Or(t.Replicas, 1) }

// requestSubjects are listed per pool and priority, so that an unknown pool or
// priority is refused at publishing.
func (t Topology) requestSubjects() []string {
	var subjects []string
	for _, pool := range t.pools() {
		for _, priority := range tool.Priorities {
			subjects = append(subjects, t.Names.RequestSubject(pool, priority, "*"))
		}
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

func (t Topology) parts() []part {
	n := t.Names
	parts := []part{
		{kind: KindStream, stream: t.requests()},
		{kind: KindStream, stream: jetstream.StreamConfig{
			Name: n.ResultsStream(), Description: "The one result of each request",
			Subjects: []string{n.ResultSubject("*", "*")}, AllowDirect: true,
			MaxAge: resultsAge, Duplicates: otherDuplicates,
		}},
		{kind: KindStream, stream: jetstream.StreamConfig{
			Name: n.EventsStream(), Description: "Live events of requests that ask for them",
			Subjects: []string{n.EventSubject("*", "*")},
			MaxAge:   eventsAge, Duplicates: otherDuplicates,
		}},
		{kind: KindStream, stream: jetstream.StreamConfig{
			Name: n.DeadLettersStream(), Description: "Requests that could not be read or answered",
			Subjects: []string{n.subject("dead", "*", "*", "*")},
			MaxAge:   deadLettersAge, Duplicates: otherDuplicates,
		}},
		{kind: KindStream, stream: jetstream.StreamConfig{
			Name: n.CancellationsStream(), Description: "Requests that somebody cancelled",
			Subjects: []string{n.CancelSubject("*", "*")},
			MaxAge:   cancellationsAge, MaxMsgsPerSubject: 1, Duplicates: otherDuplicates,
		}},
		bucket(n.CatalogBucket(), "Tools, projects and switches", catalogHistory, 0),
		bucket(n.AttemptsBucket(), "Starts of requests that were delivered again", 1, attemptsAge),
		bucket(n.WorkersBucket(), "Workers that are alive", 1, workersAge),
		storePart(n.PayloadsStore(), "Large members of results", resultsAge),
	}
	for i := range parts {
		parts[i].setReplicas(t.replicas())
	}
	return parts
}

func (t Topology) requests() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: t.Names.RequestsStream(), Description: "Tool requests that wait for a worker",
		Subjects: t.requestSubjects(), Retention: jetstream.WorkQueuePolicy,
		// A full queue refuses the publisher, it never drops a request.
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgs: maxRequests, MaxBytes: maxRequestBytes, MaxMsgsPerSubject: maxRequestsPerSubject,
		MaxMsgSize: MaxRequestSize, MaxConsumers: maxConsumers, Duplicates: requestDuplicates,
		AllowDirect: true, // cancelled requests are found by reading a project's in batches
		RePublish: &jetstream.RePublish{
			Source:      t.Names.subject("request", ">"),
			Destination: t.Names.subject("wake", ">"),
			HeadersOnly: true,
		},
	}
}

func bucket(name, description string, history uint8, ttl time.Duration) part {
	return part{
		kind: KindBucket,
		kv:   jetstream.KeyValueConfig{Bucket: name, Description: description, History: history, TTL: ttl},
		stream: jetstream.StreamConfig{
			Name: "KV_" + name, MaxAge: ttl, MaxMsgsPerSubject: int64(history), Discard: jetstream.DiscardNew,
		},
	}
}

func storePart(name, description string, ttl time.Duration) part {
	return part{
		kind:   KindStore,
		store:  jetstream.ObjectStoreConfig{Bucket: name, Description: description, TTL: ttl},
		stream: jetstream.StreamConfig{Name: "OBJ_" + name, MaxAge: ttl, Discard: jetstream.DiscardNew},
	}
}

func (p *part) setReplicas(n int) {
	p.stream.Replicas, p.kv.Replicas, p.store.Replicas = n, n, n
	p.name = cmp.Or(p.kv.Bucket, p.store.Bucket, p.stream.Name)
}

func streamNamed(name string) jetstream.StreamConfig { return jetstream.StreamConfig{Name: name} }
