// Package trace is what an operator sees of a request from outside: spans,
// metrics and logs, by OpenTelemetry. It sets the providers up from the
// standard OTEL_* variables, carries trace contexts over NATS headers and
// CloudEvents, and owns the span names and attributes of PROTOCOL.md section 8.
//
// Inputs, outputs, code and environment values never become attributes, and
// neither do error messages, which quote stderr: only codes do.
package trace

// Scope is the instrumentation scope of every span, metric and log record.
const Scope = "github.com/toolworker/toolworker"
