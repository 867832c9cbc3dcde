// Package event is the wire: it turns CloudEvents into requests and results
// into CloudEvents (PROTOCOL.md sections 2, 5 and 7). It knows subjects and
// headers, but no NATS.
//
// Reading has two sides. What is right is read by hand, in one pass and
// strictly. What that pass refuses is read again, tolerantly and against the
// JSON Schemas, only to list everything that is wrong with it: the first side
// alone accepts, the second alone explains.
package event
