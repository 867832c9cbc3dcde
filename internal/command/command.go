// Package command is what the two programs have in common: how flags and
// environment variables are read, how errors are told, and the exit codes.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/toolworker/toolworker/internal/queue"
)

// EnvPrefix starts the environment variable of every flag.
const EnvPrefix = "TOOLWORKER"

// Streams are the standard streams of a program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// errHelp says that a help text was printed: nothing else is to be done.
var errHelp = errors.New("help was printed")

// Parse reads args and the environment into grammar, a pointer to a struct of
// kong's, and returns the command that was chosen. It returns nil without an
// error when a help text was asked for and printed. Every other error is a
// *Error with the code Usage.
func Parse(name string, grammar any, args []string, s Streams, opts ...kong.Option) (*kong.Context, error) {
	parser, err := New(name, grammar, append(opts, kong.Writers(s.Out, s.Err))...)
	if err != nil {
		return nil, err
	}
	chosen, err := parse(parser, args)
	switch {
	case errors.Is(err, errHelp):
		return nil, nil
	case err != nil:
		return nil, &Error{Code: Usage, Err: err, Hint: "see " + helpFor(name, chosen, err)}
	}
	return chosen, nil
}

// New makes the parser of Parse; documentation is checked against its model.
func New(name string, grammar any, opts ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append([]kong.Option{
		kong.Name(name),
		kong.DefaultEnvars(EnvPrefix),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{{Key: "nats", Title: "Connection:"}}),
		kong.Vars{
			"data_dir":       queue.DefaultDataDir,
			"subject_prefix": queue.DefaultSubjectPrefix,
			"stream_prefix":  queue.DefaultStreamPrefix,
		},
		kong.Exit(func(int) { panic(errHelp) }),
	}, opts...)...)
}

// parse turns the exit that kong wants after a help text into an error.
func parse(parser *kong.Kong, args []string) (chosen *kong.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			asked, ok := r.(error)
			if !ok || !errors.Is(asked, errHelp) {
				panic(r)
			}
			err = errHelp
		}
	}()
	return parser.Parse(args)
}

// helpFor is the command line that explains what was wrong.
func helpFor(name string, chosen *kong.Context, err error) string {
	var bad *kong.ParseError
	if chosen == nil && errors.As(err, &bad) {
		chosen = bad.Context
	}
	words := []string{name}
	if chosen != nil {
		for _, step := range chosen.Path {
			if step.Command != nil {
				words = append(words, step.Command.Name)
			}
		}
	}
	return strings.Join(append(words, "--help"), " ")
}

// Main runs a program and returns its exit code. The context given to run
// ends at the first SIGINT or SIGTERM, hurry at the second.
func Main(name string, run func(ctx context.Context, hurry context.Context, args []string, s Streams) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hurry, rush := context.WithCancel(context.Background())
	defer rush()
	go func() {
		<-signals
		cancel()
		<-signals
		rush()
	}()
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	err := run(ctx, hurry, os.Args[1:], s)
	Report(s.Err, name, err)
	return ExitCode(err)
}

// Report tells err on one line, its hint included.
func Report(w io.Writer, name string, err error) {
	var e *Error
	switch {
	case err == nil:
		return
	case !errors.As(err, &e):
		fmt.Fprintf(w, "%s: %s\n", name, oneLine(err.Error()))
	case e.Err == nil: // the code says it all
	case e.Hint == "":
		fmt.Fprintf(w, "%s: %s\n", name, oneLine(err.Error()))
	default:
		fmt.Fprintf(w, "%s: %s (%s)\n", name, oneLine(err.Error()), e.Hint)
	}
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
