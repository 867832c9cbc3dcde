package queue

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// Default prefixes of subjects and of streams.
const (
	DefaultSubjectPrefix = "tools"
	DefaultStreamPrefix  = "TOOL"
)

// Unknown stands in the subject of a dead letter for a pool or project that
// could not be read.
const Unknown = "_"

// Names gives every subject, stream and bucket of one fleet its name
// (PROTOCOL.md section 1). The zero value has the default prefixes.
type Names struct {
	SubjectPrefix string // one or more tokens; "" means DefaultSubjectPrefix
	StreamPrefix  string // "" means DefaultStreamPrefix; buckets have it in lower case
}

// Validate reports a prefix that no server would take.
func (n Names) Validate() error {
	for token := range strings.SplitSeq(n.Prefix(), ".") {
		if err := tool.CheckName("subject prefix", token); err != nil {
			return err
		}
	}
	return tool.CheckName("stream prefix", n.streamPrefix())
}

// Prefix is the prefix of all subjects.
func (n Names) Prefix() string { return cmp.Or(n.SubjectPrefix, DefaultSubjectPrefix) }

func (n Names) streamPrefix() string { return cmp.Or(n.StreamPrefix, DefaultStreamPrefix) }

func (n Names) subject(tokens ...string) string {
	return n.Prefix() + "." + strings.Join(tokens, ".")
}

func (n Names) bucket(name string) string { return strings.ToLower(n.streamPrefix()) + "_" + name }

// RequestsStream and the following are the names of the streams.
func (n Names) RequestsStream() string      { return n.streamPrefix() + "_REQUESTS" }
func (n Names) ResultsStream() string       { return n.streamPrefix() + "_RESULTS" }
func (n Names) EventsStream() string        { return n.streamPrefix() + "_EVENTS" }
func (n Names) DeadLettersStream() string   { return n.streamPrefix() + "_DEAD_LETTERS" }
func (n Names) CancellationsStream() string { return n.streamPrefix() + "_CANCELLATIONS" }

// CatalogBucket and the following are the names of the buckets and object stores.
func (n Names) CatalogBucket() string  { return n.bucket("catalog") }
func (n Names) AttemptsBucket() string { return n.bucket("attempts") }
func (n Names) WorkersBucket() string  { return n.bucket("workers") }
func (n Names) PayloadsStore() string  { return n.bucket("payloads") }

// InputsStore is the object store of one project's large inputs.
func (n Names) InputsStore(project string) string { return n.bucket("inputs_") + project }

// RequestSubject is where a request is published. "*" selects all of a token.
func (n Names) RequestSubject(pool string, priority tool.Priority, project string) string {
	return n.subject("request", pool, string(priority), project)
}

// WakeSubject is where the headers of a stored request appear.
func (n Names) WakeSubject(pool string, priority tool.Priority, project string) string {
	return n.subject("wake", pool, string(priority), project)
}

// ResultSubject is where the one result of a request is stored.
func (n Names) ResultSubject(project, id string) string { return n.subject("result", project, id) }

// EventSubject is where live events of a request appear.
func (n Names) EventSubject(project, id string) string { return n.subject("event", project, id) }

// CancelSubject is where the cancellation of a request is published.
func (n Names) CancelSubject(project, id string) string { return n.subject("cancel", project, id) }

// DeadSubject is where a dead letter is stored. Tokens that are no names become Unknown.
func (n Names) DeadSubject(pool, project string, code tool.Code) string {
	known := func(s string) string {
		if tool.ValidName(s) {
			return s
		}
		return Unknown
	}
	return n.subject("dead", known(pool), known(project), known(string(code)))
}

// Split returns the tokens of a subject of this fleet after the prefix and
// the kind ("request", "wake", "result", "event", "cancel" or "dead"), which
// must be count.
func (n Names) Split(subject, kind string, count int) ([]string, error) {
	rest, ok := strings.CutPrefix(subject, n.subject(kind)+".")
	tokens := strings.Split(rest, ".")
	if !ok || len(tokens) != count {
		return nil, fmt.Errorf("subject %q: expected %s and %d tokens", subject, n.subject(kind), count)
	}
	return tokens, nil
}

// RequestMsgID is the Nats-Msg-Id of a request.
func RequestMsgID(project, id string) string { return project + "/" + id }

// ResultMsgID is the Nats-Msg-Id of a result.
func ResultMsgID(project, id string) string { return project + "/" + id + "/result" }
