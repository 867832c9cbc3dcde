package event_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

func ExampleDecodeRequest() {
	m := event.Message{
		Subject: "tools.request.default.high.project-1",
		Header:  map[string][]string{"Content-Type": {"application/cloudevents+json"}},
		Data: []byte(`{"specversion":"1.0","id":"r-1","source":"/planners/7","type":"dev.toolworker.request.v1",
			"data":{"project":"project-1","tool":"file_read","input":{"path":"go.mod"}}}`),
	}
	q, err := event.DecodeRequest(m, "tools")
	fmt.Println(q.Priority, q.Name(), string(q.Input), err)
	// Output: high file_read {"path":"go.mod"} <nil>
}

func ExampleDecodeRequest_refused() {
	m := event.Message{
		Subject: "tools.request.default.high.project-1",
		Data: []byte(`{"specversion":"1.0","id":"r-1","source":"/planners/7","type":"dev.toolworker.request.v1",
			"data":{"project":"project-2","tool":"file_read","inputs":{},"limits":{"pids":0}}}`),
	}
	q, err := event.DecodeRequest(m, "tools")
	var rejected *tool.Error
	if errors.As(err, &rejected) {
		result := &tool.Result{RequestID: q.ID, Project: q.Project, Tool: q.Name(), Error: rejected}
		answer, _ := event.EncodeResult(context.Background(), result, q, nil, "tools")
		fmt.Println(answer.Subject)
		fmt.Println(rejected.Message)
	}
	// Output:
	// tools.result.project-1.r-1
	// /data/inputs: unknown member; /data/limits/pids: 0: expected a whole number from 1 to 9007199254740991; /data/project: "project-2": expected "project-1", the last token of the subject
}
