package consume

import (
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestConfigDefaults(t *testing.T) {
	c := Config{}.WithDefaults()
	if c.Slots < 2 || c.DrainTimeout != DefaultDrain || c.Heartbeat != Heartbeat || len(c.Pools) != 1 || c.Pools[0] != tool.DefaultPool || c.Log == nil {
		t.Errorf("%+v", c)
	}
	if c := (Config{DrainTimeout: -1}).WithDefaults(); c.DrainTimeout != 0 {
		t.Errorf("drain timeout %s, expected none", c.DrainTimeout)
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	good := newMemory(t).config(succeed)
	for want, change := range map[string]func(*Config){
		"all of its parts":       func(c *Config) { c.Finder = nil },
		"concurrency -1":         func(c *Config) { c.Slots = -1 },
		"project concurrency -2": func(c *Config) { c.ProjectSlots = -2 },
		`pool "a.b"`:             func(c *Config) { c.Pools = []string{"a.b"} },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
	}
}
