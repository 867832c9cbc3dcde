package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
	"github.com/toolworker/toolworker/internal/tool"
)

// benchCommand is `publisher bench`.
type benchCommand struct {
	Project     command.Name `name:"project" short:"p" required:"" placeholder:"PROJECT" help:"Project that the requests are about."`
	Tool        command.Name `name:"tool" placeholder:"TOOL" help:"Tool to run (inline Python that prints a number)."`
	Code        string       `name:"code" short:"c" default:"print(6 * 7)" placeholder:"CODE" help:"Inline Python to run where there is no --tool (${default})."`
	Requests    int          `name:"requests" short:"n" default:"1000" placeholder:"N" help:"Requests in all (${default})."`
	Concurrency int          `name:"concurrency" default:"8" placeholder:"N" help:"Requests under way at once (${default})."`
	Rate        float64      `name:"rate" placeholder:"R" help:"Requests a second at most (as fast as it goes)."`
	inputFlags
	laneFlags
	waitFlags
}

// Help is the long form of --help.
func (*benchCommand) Help() string {
	return `Sends requests, waits for each result, and says how long that took: from the publish to the result in hand.

    publisher bench -p demo -n 2000 --concurrency 16`
}

// Validate names the value that cannot be.
func (c *benchCommand) Validate() error {
	switch {
	case c.Requests < 1 || c.Requests > 10_000_000:
		return fmt.Errorf("--requests %d: expected 1 to 10000000", c.Requests)
	case c.Concurrency < 1 || c.Concurrency > 4096:
		return fmt.Errorf("--concurrency %d: expected 1 to 4096", c.Concurrency)
	case c.Rate < 0:
		return fmt.Errorf("--rate %v: expected more than 0", c.Rate)
	}
	return c.waitFlags.Validate()
}

// measurement is what a load found out.
type measurement struct {
	Requests  int            `json:"requests"`
	Seconds   float64        `json:"seconds"`
	PerSecond float64        `json:"per_second"`
	Statuses  map[string]int `json:"statuses"`
	MinMS     float64        `json:"min_ms"`
	P50MS     float64        `json:"p50_ms"`
	P90MS     float64        `json:"p90_ms"`
	P95MS     float64        `json:"p95_ms"`
	P99MS     float64        `json:"p99_ms"`
	MaxMS     float64        `json:"max_ms"`

	latencies latencies
}

// Run makes the load. It fails when a request did not succeed.
func (c *benchCommand) Run(ctx context.Context, s *session) error {
	input, err := c.object(s.In)
	if err != nil {
		return err
	}
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := c.load(ctx, s, client, input)
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.printDocument(m)
	} else {
		err = m.print(s.Out)
	}
	if err == nil && m.Statuses[string(tool.StatusSucceeded)] < m.Requests {
		err = done(command.Failed)
	}
	return err
}

// load sends the requests and collects what became of them.
func (c *benchCommand) load(ctx context.Context, s *session, client *queue.Client, input []byte) (*measurement, error) {
	sender := s.sender(client)
	results, err := newArrivals(client, string(c.Project))
	if err != nil {
		return nil, err
	}
	defer results.close()
	progress := terminal.NewProgress(s.Err, "bench", c.Requests)
	defer progress.Finish()

	var mu sync.Mutex
	statuses := map[string]int{}
	var measured []time.Duration
	workers := pool.New().WithMaxGoroutines(c.Concurrency).WithContext(ctx).WithCancelOnError().WithFirstError()
	begun := time.Now()
	for n := range c.Requests {
		if err := c.pace(ctx, begun, n); err != nil {
			break
		}
		workers.Go(func(ctx context.Context) error {
			status, took, err := c.one(ctx, sender, results, input)
			if err != nil {
				return err
			}
			progress.Step(status == string(tool.StatusSucceeded))
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			measured = append(measured, took)
			return nil
		})
	}
	err = workers.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, &command.Error{Code: command.NoResult, Err: errors.New("interrupted")}
	case err != nil:
		return nil, err
	}
	return measure(time.Since(begun), statuses, measured), nil
}

// pace waits until it is the turn of request n.
func (c *benchCommand) pace(ctx context.Context, begun time.Time, n int) error {
	if c.Rate == 0 {
		return ctx.Err()
	}
	due := begun.Add(time.Duration(float64(n) / c.Rate * float64(time.Second)))
	select {
	case <-time.After(time.Until(due)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// one sends one request and waits for its result.
func (c *benchCommand) one(ctx context.Context, sender *sender, results *arrivals, input []byte) (status string, took time.Duration, err error) {
	id, err := newID()
	if err != nil {
		return "", 0, err
	}
	r := &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: source(), Time: time.Now().UTC()},
		Pool:     string(c.Pool), Priority: tool.Priority(c.Priority), Project: string(c.Project),
		Tool: string(c.Tool), Input: input,
	}
	if r.Tool == "" {
		r.Inline = &tool.Inline{Source: "custom", Code: c.Code}
	}
	arrived := results.expect(id)
	begun := time.Now()
	if err := sender.send(ctx, r); err != nil {
		return "", 0, err
	}
	timeout := time.NewTimer(c.WaitTimeout)
	defer timeout.Stop()
	select {
	case m := <-arrived:
		took = time.Since(begun)
		doc, err := event.DecodeResult(m)
		if err != nil {
			return "", 0, err
		}
		return string(doc.Status), took, nil
	case <-timeout.C:
		results.forget(id)
		return "no_result", time.Since(begun), nil
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
}

func measure(elapsed time.Duration, statuses map[string]int, measured []time.Duration) *measurement {
	l := newLatencies(measured)
	ms := func(p float64) float64 { return float64(l.percentile(p).Microseconds()) / 1000 }
	return &measurement{
		Requests: len(l), Seconds: elapsed.Seconds(), PerSecond: float64(len(l)) / elapsed.Seconds(), Statuses: statuses,
		MinMS: ms(0), P50MS: ms(50), P90MS: ms(90), P95MS: ms(95), P99MS: ms(99), MaxMS: ms(100), latencies: l,
	}
}

// print is the measurement for people.
func (m *measurement) print(w io.Writer) error {
	rows := [][]string{
		{"requests", fmt.Sprintf("%d in %.2f s, %.0f a second", m.Requests, m.Seconds, m.PerSecond)},
	}
	for _, status := range []string{"succeeded", "failed", "rejected", "cancelled", "expired", "no_result"} {
		if n := m.Statuses[status]; n > 0 {
			rows = append(rows, []string{status, fmt.Sprint(n)})
		}
	}
	l := m.latencies
	rows = append(rows, []string{"latency", fmt.Sprintf("min %s, p50 %s, p90 %s, p95 %s, p99 %s, max %s",
		short(l.percentile(0)), short(l.percentile(50)), short(l.percentile(90)), short(l.percentile(95)), short(l.percentile(99)), short(l.percentile(100)))})
	if err := terminal.Write(w, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return l.plot(w, terminal.Width(w))
}
