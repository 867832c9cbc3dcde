package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/safefile"
)

// Name is the file name under which the worker's binary is put into a
// container. Executed under it, the binary is an agent.
const Name = "toolworker-agent"

// Orders that an agent takes as its first argument.
const (
	// Serve is followed by the nonce of the session.
	OrderServe = "serve"
	// OrderHold is followed by a duration: keep a container alive for so long.
	OrderHold = "hold"
	// OrderProbe is followed by anything: say that this binary runs here.
	OrderProbe = "probe"
)

// DirPrefix begins the name of the directory in which an agent lies that is to
// remove itself, with that directory, as soon as it runs.
const DirPrefix = ".toolworker-"

// Main is called at the beginning of the program, after sandbox.Main. It
// returns at once when this is an ordinary start, and never when the program
// was executed as an agent or as a part of one.
func Main() {
	var err error
	switch filepath.Base(os.Args[0]) {
	case slotArg0:
		err = slotMain()
	case Name:
		err = run(os.Args[1:])
	default:
		return
	}
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%d arguments: expected an order and its argument", len(args))
	}
	switch args[0] {
	case OrderServe:
		return serve(args[1])
	case OrderHold:
		return hold(args[1])
	case OrderProbe:
		return nil
	}
	return fmt.Errorf("order %q: expected %s, %s or %s", args[0], OrderServe, OrderHold, OrderProbe)
}

// serve is an agent: it lives as long as its input.
func serve(nonce string) error {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGPIPE, unix.SIGQUIT)
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
	); err != nil {
		return fmt.Errorf("prepare agent: %w", err)
	}
	// What is executed from now on is this very file, whatever its name.
	if dir := filepath.Dir(os.Args[0]); strings.HasPrefix(filepath.Base(dir), DirPrefix) {
		_ = os.RemoveAll(dir)
	}
	r := newRunner("/proc/self/exe")
	err := Serve(context.Background(), os.Stdin, os.Stdout, ServeConfig{
		Nonce: nonce, Runner: r, ReadFile: readFile, Stage: r.stage,
	})
	err = errors.Join(err, r.Close())
	killTree()
	return err
}

// readFile implements FileReader.
func readFile(_ context.Context, root, path string, limit int64, w io.Writer) (int64, error) {
	r, err := safefile.OpenRoot(root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	sum, err := r.Copy(w, path, limit)
	return sum.Size, err
}

// hold keeps a container alive that nobody may ever come back for.
func hold(lifetime string) error {
	d, err := time.ParseDuration(lifetime)
	if err != nil {
		return fmt.Errorf("lifetime %q: expected a duration", lifetime)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return nil
}
