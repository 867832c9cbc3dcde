// Package capture keeps what a tool writes: up to a cap, in memory while it
// is small and in an unlinked file when it grows, so that the worker's memory
// stays flat whatever its tools do. What was kept can be read as raw bytes,
// as valid UTF-8, or checked to be one strict JSON document.
package capture
