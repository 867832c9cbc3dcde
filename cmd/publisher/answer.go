package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// await waits for the result of a request.
func await(ctx context.Context, client *queue.Client, project, id string, timeout time.Duration) (*event.ResultDoc, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m, err := client.WaitResult(waiting, project, id)
	switch {
	case err == nil:
		return event.DecodeResult(m)
	case waiting.Err() == nil:
		return nil, err
	}
	late := &command.Error{Code: command.NoResult, Err: fmt.Errorf("no result of %s within %s", id, timeout)}
	if ctx.Err() != nil {
		late.Err = errors.New("interrupted; the request goes on")
	}
	return nil, late.WithHint("publisher result %s %s asks again, publisher cancel %s %s stops it", project, id, project, id)
}

// texts are the members of a result that are texts, whatever their content.
var texts = map[string]bool{"stdout": true, "stderr": true}

// complete is the result as one JSON document, with everything that was moved
// to the object store in its place again.
func complete(ctx context.Context, client *queue.Client, doc *event.ResultDoc) (jsontext.Value, error) {
	if len(doc.Refs) == 0 {
		return jsontext.Value(doc.Raw), nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(doc.Raw, &members); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	for name, ref := range doc.Refs {
		content, err := fetch(ctx, client, name, ref)
		if err != nil {
			return nil, err
		}
		if isText(doc, name) {
			if content, err = json.Marshal(string(content)); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
		}
		members[name] = content
	}
	delete(members, "refs")
	return json.Marshal(members, json.Deterministic(true))
}

// isText tells a moved text from a moved document: a text keeps its head in place.
func isText(doc *event.ResultDoc, name string) bool {
	return texts[name] || name == "output" && doc.Output != nil
}

// fetch reads a moved member whole, and checks that it is the right one.
func fetch(ctx context.Context, client *queue.Client, name string, ref tool.Ref) ([]byte, error) {
	r, err := client.Payloads().Open(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", name, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", name, err)
	}
	return content, nil
}

// text is the member output, stdout or stderr as a person reads it: a text as
// it is, a document indented.
func text(ctx context.Context, client *queue.Client, doc *event.ResultDoc, name string, inPlace jsontext.Value) ([]byte, error) {
	if ref, moved := doc.Refs[name]; moved {
		content, err := fetch(ctx, client, name, ref)
		if err != nil || isText(doc, name) {
			return content, err
		}
		inPlace = content
	}
	switch inPlace.Kind() {
	case jsontext.KindString:
		unquoted, err := jsontext.AppendUnquote(nil, inPlace)
		return unquoted, err
	case jsontext.KindInvalid:
		return nil, nil
	}
	indented := inPlace.Clone()
	if err := indented.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return append(indented, '\n'), nil
}

// outcome is the error that gives the exit code of a result: nil for success.
func outcome(doc *event.ResultDoc) error {
	if doc.Success {
		return nil
	}
	if doc.Error == nil {
		return &command.Error{Code: command.Failed, Err: fmt.Errorf("%s", doc.Status)}
	}
	return &command.Error{Code: command.Failed, Err: doc.Error}
}
