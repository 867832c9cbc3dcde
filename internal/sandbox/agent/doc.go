// Package agent runs sandboxed processes on the far side of a byte stream:
// the same worker binary, put into a container and started there once, serves
// any number of requests at a time over its standard streams.
//
// [Session] is the worker's side and a [sandbox.Runner]; [Serve] is the far
// side. Between them travel small frames with hard bounds. Both sides treat
// what they read as hostile: a frame that breaks a rule ends the session,
// never the process that reads it.
//
// The life of a session: the agent says hello, echoing the nonce that it was
// started with; then each run is one Run frame and as many Body frames as its
// code and input need, answered by output frames and one Exit. Output is paced
// by credit, so that a consumer that is slow for one run does not hold up
// another. When the agent's input ends, it kills everything it started and
// exits: an agent never outlives its worker.
package agent
