package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/terminal"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// view shows a demonstration.
type view interface {
	begin(tools int, project string) error
	serving(s *service, samples []schemas.Sample) error
	result(a answer) error
	trace(a answer, spans []sdktrace.ReadOnlySpan) error
	end(good, all int) error
}

func newView(w io.Writer, json bool) view {
	if json {
		return jsonView{w}
	}
	return &textView{w: w, style: terminal.NewStyle(w)}
}

// textView shows it to a person.
type textView struct {
	w     io.Writer
	style terminal.Style
	table *terminal.Table
}

func (v *textView) begin(tools int, project string) error {
	_, err := fmt.Fprintf(v.w, "catalogue: %d tools; project: %s\n", tools, project)
	return err
}

func (v *textView) serving(s *service, samples []schemas.Sample) error {
	widest := 0
	for _, sample := range samples {
		widest = max(widest, len(sample.Name))
	}
	v.table = terminal.NewTable(v.w, []int{widest, 12, 9, 12, 9}, 4)
	_, err := fmt.Fprintf(v.w, "worker: %d slots, isolation %s, ready after %s\n\n", s.Slots, s.isolation, time.Since(s.started).Round(time.Millisecond))
	if err != nil {
		return err
	}
	if s.isolation == tool.IsolationNone {
		if _, err := fmt.Fprintln(v.w, v.style.Odd("This machine cannot confine tools (worker doctor says why): they run without isolation here.")); err != nil {
			return err
		}
	}
	return v.table.Row("SAMPLE", "TOOL", "STATUS", "CODE", "TOOK", "OUTPUT OR ERROR")
}

func (v *textView) result(a answer) error {
	if a.doc == nil {
		return v.table.Row(a.sample.Name, "", v.style.Bad("no result"), "", "", strings.Join(a.differences, "; "))
	}
	code, took := "", ""
	if a.doc.Error != nil {
		code = string(a.doc.Error.Code)
	}
	if a.doc.Status != tool.StatusRejected {
		took = fmt.Sprintf("%.1f ms", a.doc.DurationMS)
	}
	status := v.style.Good(string(a.doc.Status))
	if a.doc.Error != nil {
		status = v.style.Odd(string(a.doc.Status)) // as it should be
	}
	if len(a.differences) > 0 {
		status = v.style.Bad(string(a.doc.Status))
	}
	if err := v.table.Row(a.sample.Name, a.doc.Tool, status, code, took, terminal.Line(told(a.doc), 70)); err != nil {
		return err
	}
	for _, d := range a.differences {
		if _, err := fmt.Fprintln(v.w, v.style.Bad("  not as its sample says: "+d)); err != nil {
			return err
		}
	}
	return nil
}

// told is what a result has to say: its error, else its output, then its value.
func told(doc *event.ResultDoc) string {
	if doc.Error != nil {
		return doc.Error.Message
	}
	output := string(doc.Output)
	if text := jsontext.Value(doc.Output); text.Kind() == jsontext.KindString {
		unquoted, _ := jsontext.AppendUnquote(nil, text) // it was decoded before
		output = strings.ReplaceAll(strings.TrimSpace(string(unquoted)), "\n", " | ")
	}
	if doc.Value != nil {
		output = cmp.Or(output, "(nothing printed)") + " => " + string(doc.Value)
	}
	return output
}

func (v *textView) trace(a answer, spans []sdktrace.ReadOnlySpan) error {
	if _, err := fmt.Fprintf(v.w, "\ntrace %s of %s\n", a.trace, a.sample.Name); err != nil {
		return err
	}
	return writeTree(v.w, spans, v.style)
}

func (v *textView) end(good, all int) error {
	_, err := fmt.Fprintf(v.w, "\n%d of %d requests ended as their samples say\n", good, all)
	return err
}

// jsonView shows it to a script.
type jsonView struct{ w io.Writer }

func (v jsonView) line(value any) error {
	if err := json.MarshalWrite(v.w, value, json.Deterministic(true), json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	_, err := io.WriteString(v.w, "\n")
	return err
}

func (jsonView) begin(int, string) error                  { return nil }
func (jsonView) serving(*service, []schemas.Sample) error { return nil }

func (jsonView) end(int, int) error { return nil }

func (v jsonView) result(a answer) error {
	line := struct {
		Sample      string         `json:"sample"`
		AsExpected  bool           `json:"as_expected"`
		Differences []string       `json:"differences"`
		Result      jsontext.Value `json:"result,omitzero"`
	}{a.sample.Name, len(a.differences) == 0, a.differences, nil}
	if a.doc != nil {
		line.Result = jsontext.Value(a.doc.Raw)
	}
	return v.line(line)
}

func (v jsonView) trace(a answer, spans []sdktrace.ReadOnlySpan) error {
	type span struct {
		Name       string  `json:"name"`
		Kind       string  `json:"kind"`
		ID         string  `json:"span_id"`
		Parent     string  `json:"parent_span_id,omitzero"`
		DurationMS float64 `json:"duration_ms"`
	}
	list := make([]span, len(spans))
	for i, s := range spans {
		list[i] = span{
			Name: s.Name(), Kind: s.SpanKind().String(), ID: s.SpanContext().SpanID().String(),
			DurationMS: float64(s.EndTime().Sub(s.StartTime()).Microseconds()) / 1000,
		}
		if s.Parent().SpanID().IsValid() {
			list[i].Parent = s.Parent().SpanID().String()
		}
	}
	return v.line(struct {
		Trace  string `json:"trace_id"`
		Sample string `json:"sample"`
		Spans  []span `json:"spans"`
	}{a.trace.String(), a.sample.Name, list})
}
