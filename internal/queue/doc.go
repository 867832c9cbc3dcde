// Package queue is the JetStream side that both commands share: names and
// topology, the connection and the embedded server, requests that are
// published once, results that are written once, claim checks, dead letters,
// cancellations, the book of attempts, and the source that a consumer of
// requests draws from (PROTOCOL.md sections 1, 2, 6 and 7).
package queue
