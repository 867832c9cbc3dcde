// Command bench measures the product beside the floor that it stands on, in
// one run and on one machine, and prints ratios: absolute figures of a
// shared machine say little. It needs no network but loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/toolworker/toolworker/internal/sandbox"
)

// section is one comparison.
type section struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
}

var sections = []section{
	{"throughput", "queued no-op requests: the worker against a raw loop", throughput},
	{"latency", "one request at a time: what the worker adds", latency},
	{"fair", "a project with 100,000 queued requests, another with one", fair},
	{"memory", "resident size while 200,000 requests are worked off", memory},
	{"large", "resident size of a worker while 64 tools write 50 MiB each", large},
	{"starts", "one line of Python: bare, in bubblewrap, and in the sandbox cold and warm", starts},
	{"containers", "a command and Python in a container, by every way into it", containers},
	{"endtoend", "inline Python from publishing to its result, through NATS", endToEnd},
}

// bench is what the sections share.
type bench struct {
	out   io.Writer
	scale float64 // of the number of runs
}

func (b *bench) n(full int) int { return max(1, int(float64(full)*b.scale)) }

func main() {
	sandbox.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	scale := flags.Float64("scale", 1, "fraction of the runs, for a quick look")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: bench [-scale F] [SECTION ...]")
		for _, s := range sections {
			fmt.Fprintf(stderr, "  %-12s %s\n", s.name, s.about)
		}
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	for _, name := range flags.Args() {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			flags.Usage()
			return fmt.Errorf("unknown section %q", name)
		}
	}
	b := &bench{out: stdout, scale: *scale}
	for _, s := range sections {
		if flags.NArg() > 0 && !slices.Contains(flags.Args(), s.name) {
			continue
		}
		fmt.Fprintf(stdout, "%s: %s\n", s.name, s.about)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintln(stdout, strings.Repeat("-", 72))
	}
	return nil
}
