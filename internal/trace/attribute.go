package trace

import (
	"go.opentelemetry.io/otel/attribute"
	genai "go.opentelemetry.io/otel/semconv/v1.41.0"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/toolworker/toolworker/internal/tool"
)

// Attributes for which no semantic convention exists.
const (
	KeyPool            = attribute.Key("toolworker.pool")
	KeyPriority        = attribute.Key("toolworker.priority")
	KeyProject         = attribute.Key("toolworker.project")
	KeyWorker          = attribute.Key("toolworker.worker")
	KeyStatus          = attribute.Key("toolworker.status")
	KeyAttempt         = attribute.Key("toolworker.attempt")
	KeyDisposition     = attribute.Key("toolworker.disposition")
	KeyEnvironment     = attribute.Key("toolworker.environment")
	KeyDecidedBy       = attribute.Key("toolworker.decided_by")
	KeyIsolation       = attribute.Key("toolworker.isolation")
	KeyWorkspaceFolder = attribute.Key("toolworker.workspace_folder")
	KeyExecTimeMS      = attribute.Key("toolworker.exec_time_ms")
	KeyTimedOut        = attribute.Key("toolworker.timed_out")
)

// RequestTemplate is the low-cardinality form of a request's subject.
func RequestTemplate(prefix string) string {
	return prefix + ".request.{pool}.{priority}.{project}"
}

// ResultTemplate is the low-cardinality form of a result's subject.
func ResultTemplate(prefix string) string { return prefix + ".result.{project}.{request_id}" }

// attributes describes one operation on m.
func (m Message) attributes(operation string, kind attribute.KeyValue, template string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		semconv.MessagingSystemKey.String("nats"),
		semconv.MessagingOperationName(operation),
		kind,
		semconv.MessagingDestinationTemplate(template),
		semconv.MessagingDestinationName(m.Subject),
	}
	if m.ID != "" {
		attrs = append(attrs, semconv.MessagingMessageID(m.ID))
		attrs = append(attrs, m.event()...)
	}
	if m.Size > 0 {
		attrs = append(attrs, semconv.MessagingMessageBodySize(m.Size))
	}
	return attrs
}

// event describes the CloudEvent inside m.
func (m Message) event() []attribute.KeyValue {
	attrs := []attribute.KeyValue{semconv.CloudEventsEventSpecVersion("1.0"), semconv.CloudEventsEventID(m.ID)}
	for _, a := range [...]attribute.KeyValue{
		semconv.CloudEventsEventSource(m.Source), semconv.CloudEventsEventType(m.Type), semconv.CloudEventsEventSubject(m.EventSubject),
	} {
		if a.Value.AsString() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// toolCall describes the call of a tool by the conventions for generative AI.
func toolCall(r *tool.Request) []attribute.KeyValue {
	return []attribute.KeyValue{
		genai.GenAIOperationNameExecuteTool,
		genai.GenAIToolName(r.Name()),
		genai.GenAIToolType("function"),
		genai.GenAIToolCallID(r.ID),
		KeyProject.String(r.Project),
		KeyPool.String(r.Pool),
		KeyPriority.String(string(r.Priority)),
	}
}

// Outcome describes how and where a request was executed, as its result says.
func Outcome(r *tool.Result) []attribute.KeyValue {
	attrs := []attribute.KeyValue{KeyStatus.String(string(r.Status())), KeyAttempt.Int(r.Attempt)}
	if e := r.Metadata.Environment; e != nil {
		attrs = append(attrs, KeyEnvironment.String(string(e.Resolved)), KeyDecidedBy.String(string(e.DecidedBy)))
	}
	return attrs
}

// Process describes a process on the host, as it ended.
func Process(p *tool.ProcessMetadata, s *tool.SandboxMetadata) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	if p != nil {
		attrs = append(attrs, semconv.ProcessExitCode(p.ExitCode), KeyTimedOut.Bool(p.TimedOut))
	}
	if s != nil {
		attrs = append(attrs, KeyIsolation.String(string(s.Isolation)))
	}
	return attrs
}

// Container describes an execution in a container. runtime is the name of the
// engine ("docker", "podman").
func Container(c *tool.ContainerMetadata, runtime string) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.ContainerID(c.ContainerID),
		semconv.ContainerImageName(c.Image),
		semconv.ContainerRuntimeName(runtime),
		KeyWorkspaceFolder.String(c.WorkspaceFolder),
		semconv.ProcessExitCode(c.ExitCode),
		KeyExecTimeMS.Float64(c.ExecTimeMS),
		KeyTimedOut.Bool(c.TimedOut),
	}
}
