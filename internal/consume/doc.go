// Package consume takes requests from their queue under bounded concurrency
// and settles every one of them: it is given back, put aside, or answered
// once and acknowledged. Nothing is lost, nothing starves, nothing is
// stranded (PROTOCOL.md sections 1 and 6).
//
// The life of a delivery:
//
//  1. The scheduler reserves slots for the lane whose turn it is, and only
//     then its messages are fetched: never more than can start at once.
//  2. From its receipt to its settlement a message is kept alive by the
//     heartbeat.
//  3. It is decoded. What cannot be read becomes a dead letter.
//  4. Redeliveries are looked up: an answered one is acknowledged, lost
//     starts are counted, five are worker_lost.
//  5. Expired and cancelled requests are answered so; paused ones and those
//     whose tool is at its bound wait, without their slot, or go back.
//  6. The executor runs it.
//  7. A fault of the infrastructure, a drain or the request's retry policy
//     gives the message back; everything else is a result.
//  8. The result is encoded, stored unless somebody was first, and the
//     message is acknowledged; each step is repeated until it succeeds.
//
// The package knows neither the queue's technology nor the executor's: it
// declares what it needs of them (Source, Message, Executor, Answers,
// Attempts and so on) and leaves it to the program to bring them together.
package consume
