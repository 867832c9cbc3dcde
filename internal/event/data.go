package event

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

// Bounds of a request, those of the schema.
const (
	// MaxDepth is how many levels of objects and lists the data of a request
	// may have; interpreters of tools follow no more than about a thousand.
	MaxDepth = 512

	maxPathLength = 4096 // characters of an output
	maxOutputs    = 1000
	maxPlanID     = 1024 // characters
	maxAttempts   = 1000
)

// readData reads the data of a request into r. The error is the first thing
// that is wrong.
func readData(data []byte, q *tool.Request) error {
	r := newReader(data)
	defer r.free()
	hasProject, hasTool := false, false
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "project":
			hasProject = true
			return r.toolName(&q.Project)
		case "tool":
			hasTool = true
			return r.toolName(&q.Tool)
		case "inline":
			q.Inline = &tool.Inline{}
			return r.inline(q.Inline)
		case "input":
			return r.input(&q.Input)
		case "tool_env":
			return r.environment(&q.ToolEnv)
		case "plan":
			return r.plan(&q.Plan)
		case "limits":
			return r.limits(&q.Limits)
		case "outputs":
			return r.outputs(&q.Outputs)
		case "retry":
			return r.retry(&q.Retry)
		case "stream":
			return r.boolean(&q.Stream)
		}
		return r.unknown()
	})
	switch {
	case err != nil:
		return err
	case !hasProject:
		return &misfit{"/project", "missing, but required"}
	case hasTool == (q.Inline != nil):
		return &misfit{"", "expected exactly one of tool and inline"}
	}
	if q.Input == nil {
		q.Input = []byte("{}")
	}
	return r.end()
}

func (r *reader) unknown() error { return r.refuse("unknown member") }

func (r *reader) toolName(s *string) error {
	if err := r.text(s); err != nil {
		return err
	}
	if !tool.ValidName(*s) {
		return r.refuse("%q: expected 1 to %d characters of A-Z a-z 0-9 _ -", cut(*s, maxShown), tool.MaxNameLength)
	}
	return nil
}

func (r *reader) environment(e *tool.Environment) error {
	var s string
	if err := r.text(&s); err != nil {
		return err
	}
	parsed, err := tool.ParseEnvironment(s)
	if err != nil || parsed == "" {
		return r.refuse("%q: expected host or container, in any letter case", cut(s, maxShown))
	}
	*e = parsed
	return nil
}

func (r *reader) inline(in *tool.Inline) error {
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "name":
			return r.toolName(&in.Name)
		case "source":
			return r.text(&in.Source)
		case "code":
			return r.text(&in.Code)
		case "capability":
			return r.object(func(name []byte) error {
				switch string(name) {
				case "writes":
					return r.boolean(&in.Capability.Writes)
				case "network":
					return r.boolean(&in.Capability.Network)
				}
				return r.unknown()
			})
		}
		return r.unknown()
	})
	if in.Source == "" {
		in.Source = "custom"
	}
	return err
}

func (r *reader) plan(p *tool.Plan) error {
	return r.object(func(name []byte) error {
		switch string(name) {
		case "id":
			if err := r.text(&p.ID); err != nil {
				return err
			}
			if utf8.RuneCountInString(p.ID) > maxPlanID || strings.Contains(p.ID, "\x00") {
				return r.refuse("expected a text of at most %d characters without NUL", maxPlanID)
			}
			return nil
		case "execution_environment":
			return r.environment(&p.ExecutionEnvironment)
		case "read_only":
			return r.boolean(&p.ReadOnly)
		}
		return r.unknown()
	})
}

func (r *reader) limits(l *tool.Limits) error {
	return r.object(func(name []byte) error {
		switch string(name) {
		case "timeout_seconds":
			return r.quantity(&l.TimeoutSeconds, minSeconds, maxSeconds)
		case "max_output_bytes":
			return r.count(&l.MaxOutputBytes, 1, maxCount)
		case "memory_bytes":
			return r.count(&l.MemoryBytes, 1, maxCount)
		case "cpus":
			return r.quantity(&l.CPUs, minSeconds, maxSeconds)
		case "cpu_seconds":
			return r.quantity(&l.CPUSeconds, minSeconds, maxSeconds)
		case "pids":
			return r.count(&l.PIDs, 1, maxCount)
		case "file_size_bytes":
			return r.count(&l.FileSizeBytes, 1, maxCount)
		case "open_files":
			return r.count(&l.OpenFiles, 1, maxCount)
		}
		return r.unknown()
	})
}

func (r *reader) retry(t *tool.Retry) error {
	return r.object(func(name []byte) error {
		switch string(name) {
		case "max_attempts":
			var n int64
			if err := r.count(&n, 1, maxAttempts); err != nil {
				return err
			}
			t.MaxAttempts = int(n)
			return nil
		case "backoff_seconds":
			return r.quantity(&t.BackoffSeconds, 0, maxSeconds)
		}
		return r.unknown()
	})
}

func (r *reader) outputs(list *[]string) error {
	t, err := r.d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != jsontext.KindBeginArray {
		return r.refuse("expected a list")
	}
	for r.d.PeekKind() != jsontext.KindEndArray {
		var s string
		if err := r.text(&s); err != nil {
			return err
		}
		if s == "" || utf8.RuneCountInString(s) > maxPathLength || strings.Contains(s, "\x00") {
			return r.refuse("%q: expected a path of 1 to %d characters without NUL", cut(s, maxShown), maxPathLength)
		}
		if *list = append(*list, s); len(*list) > maxOutputs {
			return r.refuse("expected at most %d items", maxOutputs)
		}
	}
	_, err = r.d.ReadToken()
	return err
}
