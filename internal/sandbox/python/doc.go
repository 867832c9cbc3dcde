// Package python holds the bootstrap with which every Python process of this
// system starts, cold or warm, and the two frames that travel to and from it.
//
// # The protocol of a cold start
//
// Resolve finds the interpreter and has it compile the bootstrap. Each process
// is then started with Interpreter.Cold.Argv and these descriptors:
//
//	0  /dev/null
//	1  the output pipe: sys.stdout and sys.stderr, in the order written
//	2  the same pipe as 1
//	3  RequestFD, read end: Interpreter.Cold.Prologue, the frame of Request.Frame, EOF
//	4  ValueFD, write end: read it with ReadValue until EOF, while the process runs
//
// Nothing else is inherited. The code, its name and its input travel in the
// frame only: never in argv, the environment or a file. An interpreter whose
// RequestFD ends before the frame exits with status 0, so that one can be
// started ahead of its request (write the prologue at once) and dropped. Write
// from a goroutine of its own, or pass a memfd: a pipe holds 64 KiB.
//
// The process behaves like python3 with a script, from the first line to the
// exit status: SystemExit, tracebacks (with source lines, without frames of
// the bootstrap), threads joined, atexit run, open files flushed. What differs:
//
//   - sys.argv is [name], tracebacks name the file <name>, and input_data holds
//     the parsed input;
//   - sys.stdout and sys.stderr are UTF-8 whatever the locale is;
//   - the functions on the call stack below the module (traceback.print_stack,
//     inspect.stack) show the bootstrap;
//   - at the end the globals are cleared and the process leaves with _exit: the
//     modules of the standard library are not torn down one by one.
//
// # Frames
//
// All integers are little-endian and unsigned. The request:
//
//	offset  size
//	     0     4  "PYR1"
//	     4     4  length of the name
//	     8     4  length of the code
//	    12     4  length of the input
//	    16     4  most bytes of the value
//	    20     4  most levels of the value
//	    24     4  number of limits
//	    28     4  0
//	    32        limits, 24 bytes each: resource (8), soft (8), hard (8)
//	              name, code, input
//
// What is sent back, in frames of one byte, the length (4) and that many bytes:
//
//	l  one of Limits, when the code ended by an exception that says so
//	v  the value of the variable result as strict JSON
//	e  the reason why it has no strict JSON form
//
// At most one of the last two comes, and neither when the variable is
// unassigned or the process ended before its end. All of it comes from the
// untrusted side and is checked by Read.
package python
