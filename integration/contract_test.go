package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/integration/fleet"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
)

// contractPatience bounds how long a result is waited for.
const contractPatience = 90 * time.Second

// contract is a worker process with its embedded server, and a planner that
// has nothing but a connection: what PROTOCOL.md promises is asked of them.
type contract struct {
	worker    *fleet.Worker
	client    *queue.Client
	publisher *fleet.Publisher
	url       string
	data      string // the server's directory
	base      string // for the directories of projects
	catalog   string
}

// newContract starts a worker with a catalogue of entries, in which BASE
// stands for a directory of the test. Without entries it serves the bucket.
func newContract(t *testing.T, entries string, args ...string) *contract {
	t.Helper()
	c := &contract{data: t.TempDir(), base: t.TempDir()}
	if entries != "" {
		c.catalog = c.mkdir(t, "catalog")
		c.catalogue(t, "entries.yaml", entries)
		args = append(args, "--catalog", c.catalog)
	}
	c.start(t, nil, args...)
	return c
}

// start starts the worker, and connects the planner to it.
func (c *contract) start(t *testing.T, env []string, args ...string) {
	t.Helper()
	args = append(args, "--embedded-listen", "127.0.0.1:0", "--data-dir", c.data, "--container-engine", "off")
	c.worker = fleet.StartWorkerIn(t, env, args...)
	line := c.worker.Logged("embedded JetStream server, clients need its token", nil)
	c.url, _ = line["url"].(string)
	c.worker.Ready()
	c.publisher = fleet.NewPublisher(t, c.url, "--data-dir", c.data)
	token, err := queue.ReadToken(c.data)
	if err != nil {
		t.Fatal(err)
	}
	if c.client, err = queue.Connect(t.Context(), queue.Options{URL: c.url, Token: token, Name: "planner"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
}

// mkdir makes a directory below that of the test, and returns it.
func (c *contract) mkdir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(c.base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// catalogue writes one file of the catalogue, at once as an editor would.
func (c *contract) catalogue(t *testing.T, name, entries string) {
	t.Helper()
	file := filepath.Join(c.catalog, name)
	if err := os.WriteFile(file+".new", []byte(strings.ReplaceAll(entries, "BASE", c.base)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// structured is a request event as a planner writes it: attributes beside the
// usual ones, as JSON members that each begin with a comma.
func structured(id, attributes, data string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/planner","type":"dev.toolworker.request.v1"%s,"data":%s}`, id, attributes, data)
}

// publish stores a message in the queue as it is.
func (c *contract) publish(t *testing.T, subject string, header map[string]string, body string) {
	t.Helper()
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(body)}
	for name, value := range header {
		m.Header[name] = []string{value} // Set would change the letter case
	}
	if _, err := c.client.JetStream().PublishMsg(t.Context(), m); err != nil {
		t.Fatalf("publish to %s: %v", subject, err)
	}
}

// request publishes data in structured mode to a project of the default pool.
func (c *contract) request(t *testing.T, project, id, attributes, data string) {
	t.Helper()
	c.publish(t, "tools.request.default.normal."+project, map[string]string{
		"Content-Type": "application/cloudevents+json", "Nats-Msg-Id": project + "/" + id,
	}, structured(id, attributes, data))
}

// result waits for a result, which has to be as its schema says.
func (c *contract) result(t *testing.T, project, id string) *event.ResultDoc {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), contractPatience)
	defer cancel()
	m, err := c.client.WaitResult(ctx, project, id)
	if err != nil {
		t.Fatalf("result of %s/%s: %v", project, id, err)
	}
	doc, err := event.DecodeResult(m)
	if err != nil {
		t.Fatalf("result of %s/%s: %v\n%s", project, id, err, m.Data)
	}
	return doc
}

// ask sends data of a request and waits for its result.
func (c *contract) ask(t *testing.T, project, id, data string) *event.ResultDoc {
	t.Helper()
	c.request(t, project, id, "", data)
	return c.result(t, project, id)
}

// quoted is s as a JSON string.
func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// inline is the data of a request with code and, each beginning with a comma,
// further members.
func inline(project, code, members string) string {
	return fmt.Sprintf(`{"project":%q,"inline":{"code":%s}%s}`, project, quoted(code), members)
}

// call is the data of a request for a tool.
func call(project, tool, members string) string {
	return fmt.Sprintf(`{"project":%q,"tool":%q%s}`, project, tool, members)
}
