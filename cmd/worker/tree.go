package main

import (
	"fmt"
	"io"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/terminal"
)

// writeTree writes the spans of a trace, earliest first, as a tree with their
// durations. A span whose parent is not among them stands at the root.
func writeTree(w io.Writer, spans []sdktrace.ReadOnlySpan, style terminal.Style) error {
	known := map[oteltrace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanContext().SpanID()] = true
	}
	children := map[oteltrace.SpanID][]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		parent := s.Parent().SpanID()
		if !known[parent] {
			parent = oteltrace.SpanID{}
		}
		children[parent] = append(children[parent], s)
	}
	rows := [][]string{}
	var add func(parent oteltrace.SpanID, indent string)
	add = func(parent oteltrace.SpanID, indent string) {
		list := children[parent]
		for i, s := range list {
			branch, below := "├─ ", "│  "
			if i == len(list)-1 {
				branch, below = "└─ ", "   "
			}
			if !parent.IsValid() {
				branch, below = "", ""
			}
			rows = append(rows, []string{
				style.Faint(indent+branch) + s.Name(),
				milliseconds(s.EndTime().Sub(s.StartTime())),
				style.Faint(s.SpanKind().String()),
			})
			add(s.SpanContext().SpanID(), indent+below)
		}
	}
	add(oteltrace.SpanID{}, "")
	return terminal.Write(w, rows, 1)
}

// milliseconds is a duration for a column of a table.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
