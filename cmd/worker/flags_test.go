package main

import (
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

func parsed(t *testing.T, args ...string) *runCommand {
	t.Helper()
	var g grammar
	if _, err := command.Parse(name, &g, append([]string{"run"}, args...), command.Streams{Out: io.Discard, Err: io.Discard}, options()...); err != nil {
		t.Fatal(err)
	}
	return &g.Run
}

func TestDefaults(t *testing.T) {
	s, err := parsed(t).settings()
	if err != nil {
		t.Fatal(err)
	}
	if s.Embedded == nil || s.Embedded.Listen != "127.0.0.1:4222" || s.Embedded.DataDir != ".toolworker" || s.Catalog != "" ||
		s.Slots != 2*runtime.NumCPU() || s.ProjectSlots != 0 || s.Replicas != 1 || s.DrainTimeout != 30*time.Second ||
		s.HTTPListen != "127.0.0.1:9464" || s.Machine.Require != "" || s.Machine.Devcontainer != "devcontainer" || s.Machine.Warm != sandbox.WarmFork {
		t.Errorf("settings %+v", s)
	}
	if diff := cmp.Diff([]string{tool.DefaultPool}, s.Pools); diff != "" {
		t.Error(diff)
	}
	if tool.CheckName("name", s.Name) != nil || !strings.Contains(s.Name, "-") {
		t.Errorf("name %q", s.Name)
	}
}

func TestEverythingSet(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	t.Setenv("TOOLWORKER_REPLICAS", "3")
	s, err := parsed(t, "--nats-url", "nats://a:4222,nats://b:4222", "--catalog", a, "--pool", "x", "--pool", "y,z", "--concurrency", "7",
		"--project-concurrency", "2", "--name", "w-1", "--container-engine", "off", "--devcontainer", "/bin/dc", "--expose", a, "--expose", b,
		"--require-isolation", "reduced", "--warm", "spawn", "--preload", "json", "--preload", "re", "--drain-timeout", "0s", "--http-listen", "", "--subject-prefix", "acme.tools", "--stream-prefix", "ACME").settings()
	if err != nil {
		t.Fatal(err)
	}
	if s.Embedded != nil || s.Connection.URL != "nats://a:4222,nats://b:4222" || s.Connection.Names.Prefix() != "acme.tools" ||
		s.Connection.Names.CatalogBucket() != "acme_catalog" || s.Replicas != 3 || s.Slots != 7 || s.ProjectSlots != 2 || s.Name != "w-1" ||
		s.Catalog != a || s.HTTPListen != "" || s.DrainTimeout >= 0 {
		t.Errorf("settings %+v", s)
	}
	if diff := cmp.Diff([]string{"x", "y", "z"}, s.Pools); diff != "" {
		t.Error(diff)
	}
	want := machine{
		Engine: "off", Devcontainer: "/bin/dc", Expose: []string{a, b}, Require: tool.IsolationReduced,
		Warm: sandbox.WarmSpawn, Preload: []string{"json", "re"},
	}
	if diff := cmp.Diff(want, s.Machine); diff != "" {
		t.Error(diff)
	}
}

func TestExposedDirectoriesBecomeAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s, err := parsed(t, "--expose", ".").settings()
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Machine.Expose) != 1 || s.Machine.Expose[0] != real && s.Machine.Expose[0] != dir {
		t.Errorf("exposed %v", s.Machine.Expose)
	}
}

func TestLogsAreJSONWhereNobodyWatches(t *testing.T) {
	if got := parsed(t).logConfig(io.Discard); got.Format != "json" || got.Level != 0 {
		t.Errorf("got %+v", got)
	}
	if got := parsed(t, "--log-format=text", "--log-level=warn").logConfig(io.Discard); got.Format != "text" || got.Level.String() != "WARN" {
		t.Errorf("got %+v", got)
	}
}
