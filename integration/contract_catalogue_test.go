package integration

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const versionedCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
---
kind: Tool
name: say
command: [echo, one]
`

// A directory is followed without a restart: good entries go in, bad ones are
// refused with their place, and the last good one stays.
func TestContractCatalogueDirectory(t *testing.T) {
	t.Parallel()
	c := newContract(t, versionedCatalogue)
	c.mkdir(t, "p")
	c.says(t, "say", "one")

	c.catalogue(t, "entries.yaml", strings.Replace(versionedCatalogue, "one", "two", 1))
	eventually(t, "the new entry is in force", func() bool { return c.run(t, "say") == "two" })

	bad := strings.Replace(versionedCatalogue, "command: [echo, one]", "command: [echo, three]\nlimits: {pids: none}", 1)
	c.catalogue(t, "entries.yaml", bad+"---\nkind: Tool\nname: more\ncommand: [echo, more]\n")
	line := c.worker.Logged("catalogue entry refused, the last good one stays", map[string]any{"entry": `tool "say"`})
	if place, reason := line["place"], line["reason"]; place != filepath.Join(c.catalog, "entries.yaml")+":9" || !strings.Contains(fmt.Sprint(reason), "/limits/pids") {
		t.Errorf("refused at %v for %v", place, reason)
	}
	eventually(t, "the good entry of the file is in force", func() bool { return c.run(t, "more") == "more" })
	c.says(t, "say", "two")

	c.catalogue(t, "entries.yaml", strings.Replace(versionedCatalogue, "one", "four", 1))
	eventually(t, "the mended entry is in force", func() bool { return c.run(t, "say") == "four" })
	eventually(t, "what is gone from the file is out of force", func() bool { return c.run(t, "more") == "unknown_tool" })
}

// The bucket: all or nothing, in one step, at once known to a worker that is
// asked for a new name.
func TestContractCatalogueBucket(t *testing.T) {
	t.Parallel()
	c := newContract(t, "")
	c.mkdir(t, "p")
	dir := c.mkdir(t, "apply")
	apply := func(code int, text string) (stdout, stderr string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(strings.ReplaceAll(text, "BASE", c.base)), 0o600); err != nil {
			t.Fatal(err)
		}
		ran := c.publisher.Run("catalog", "apply", "-f", dir)
		if ran.Code != code {
			t.Fatalf("apply: exit %d, want %d\n%s%s", ran.Code, code, ran.Stdout, ran.Stderr)
		}
		return ran.Stdout, ran.Stderr
	}
	both := func(version int) string {
		return strings.Replace(versionedCatalogue, "one", fmt.Sprint("first ", version), 1) +
			fmt.Sprintf("---\nkind: Tool\nname: too\ncommand: [sh, beside.sh, second %d]\n", version)
	}
	if err := os.WriteFile(filepath.Join(dir, "beside.sh"), []byte("echo \"$1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(0, both(0))
	c.says(t, "too", "second 0") // looked up once more before it is rejected
	c.says(t, "say", "first 0")
	for version := 1; version <= 5; version++ {
		apply(0, both(version))
		first, second := fmt.Sprint("first ", version), fmt.Sprint("second ", version)
		eventually(t, "the new state is in force", func() bool { return c.run(t, "say") == first })
		c.says(t, "too", second) // never one without the other
	}

	_, stderr := apply(1, strings.Replace(both(9), "name: too", "name: t o o", 1))
	if !strings.Contains(stderr, "all.yaml:11: ") || !strings.Contains(stderr, "t o o") {
		t.Errorf("a bad entry: %q, want its place and reason", stderr)
	}
	c.says(t, "say", "first 5")

	if get := c.publisher.MustRun("catalog", "get", "say"); !strings.Contains(get.Stdout, "first 5") {
		t.Errorf("get: %q", get.Stdout)
	}
	if list := c.publisher.MustRun("catalog", "list"); !strings.Contains(list.Stdout, "too") || !strings.Contains(list.Stdout, "p ") {
		t.Errorf("list: %q", list.Stdout)
	}
	c.publisher.MustRun("catalog", "delete", "say")
	eventually(t, "what is deleted is out of force", func() bool { return c.run(t, "say") == "unknown_tool" })
	if ran := c.publisher.Run("catalog", "get", "say"); ran.Code != 1 {
		t.Errorf("get of what is deleted: exit %d, want 1", ran.Code)
	}
}

// The switches hold requests back, whatever the catalogue's source; purge
// removes what waits.
func TestContractSwitches(t *testing.T) {
	t.Parallel()
	c := newContract(t, versionedCatalogue+"---\nkind: Project\nid: q\nhost_sandbox_path: BASE/p\n", "--pool", "default", "--pool", "gpu")
	c.mkdir(t, "p")
	held := func(id string) {
		t.Helper()
		c.request(t, "p", id, "", call("p", "say", ""))
		// Somebody who comes later, and is not held back, is served.
		c.publish(t, "tools.request.gpu.low.q", nil, structured(id+"-other", "", inline("q", "print(1)", "")))
		if doc := c.result(t, "q", id+"-other"); !doc.Success {
			t.Errorf("%s", doc.Raw)
		}
		if ran := c.publisher.Run("result", "p", id); ran.Code != 3 {
			t.Errorf("%s: exit %d, want 3", id, ran.Code)
		}
	}
	for _, flags := range [][]string{{"--project", "p"}, {"--tool", "say"}, {"--pool", "default"}} {
		id := "held-by" + flags[0]
		c.pause(t, flags)
		held(id)
		c.publisher.MustRun("resume", flags...)
		if doc := c.result(t, "p", id); !doc.Success || doc.Attempt != 1 {
			t.Errorf("%v: %s", flags, doc.Raw)
		}
	}
	c.pause(t, []string{"--project", "p"})
	held("purged")
	if ran := c.publisher.MustRun("purge", "-p", "p", "--json"); ran.Stdout != `{"project":"p","purged":1}`+"\n" {
		t.Errorf("purge: %q", ran.Stdout)
	}
	c.publisher.MustRun("resume", "--project", "p")
	eventually(t, "the project is served again", func() bool { return c.run(t, "say") == "one" })
	if ran := c.publisher.Run("result", "p", "purged"); ran.Code != 3 {
		t.Errorf("a purged request: exit %d, want 3", ran.Code)
	}
}

// pause pauses, and waits until the worker knows.
func (c *contract) pause(t *testing.T, flags []string) {
	t.Helper()
	before := c.worker.Count("switches changed", map[string]any{"paused": 1.0})
	c.publisher.MustRun("pause", flags...)
	eventually(t, "the worker knows", func() bool {
		return c.worker.Count("switches changed", map[string]any{"paused": 1.0}) > before
	})
}

// run asks for a tool and returns what it said, or the code of its error.
func (c *contract) run(t *testing.T, name string) string {
	t.Helper()
	doc := c.ask(t, "p", rand.Text(), call("p", name, ""))
	if doc.Error != nil {
		return string(doc.Error.Code)
	}
	return strings.TrimSpace(*doc.Stdout)
}

func (c *contract) says(t *testing.T, name, want string) {
	t.Helper()
	if got := c.run(t, name); got != want {
		t.Errorf("%s says %q, want %q", name, got, want)
	}
}
