package python

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	requestMagic  = "PYR1"
	requestHeader = 32
	limitSize     = 24
)

// Bounds of the value when a Request does not give its own.
const (
	MaxValueBytes = 8 << 20
	MaxValueDepth = 1000
)

// Rlimit is a resource limit that the process sets for itself before the
// code's first line, never above the hard limit it has.
type Rlimit struct {
	Resource   int // RLIMIT_AS and so on
	Soft, Hard uint64
}

// Request is one run of Python code.
type Request struct {
	// Name is what sys.argv[0] and, as <name>, tracebacks call the code.
	Name string
	// Code is the source as it was sent: UTF-8, or what its coding cookie says.
	Code []byte
	// Input is one JSON document, bound to input_data; empty means {}.
	Input []byte
	// Limits are for processes that were started before their request was
	// known; others get theirs from whoever starts them.
	Limits []Rlimit
	// ValueBytes and ValueDepth bound the JSON of the variable result;
	// 0 means MaxValueBytes and MaxValueDepth.
	ValueBytes, ValueDepth uint32
}

// Frame is the request as it travels to the process. It fails when a part is
// longer than 4 GiB.
func (r *Request) Frame() ([]byte, error) {
	input := r.Input
	if len(input) == 0 {
		input = []byte("{}")
	}
	for member, size := range map[string]int{"name": len(r.Name), "code": len(r.Code), "input": len(input)} {
		if size > math.MaxUint32 {
			return nil, fmt.Errorf("encode request frame: %s of %d bytes: expected at most %d", member, size, uint32(math.MaxUint32))
		}
	}
	valueBytes, valueDepth := r.ValueBytes, r.ValueDepth
	if valueBytes == 0 {
		valueBytes = MaxValueBytes
	}
	if valueDepth == 0 {
		valueDepth = MaxValueDepth
	}
	le := binary.LittleEndian
	b := make([]byte, 0, requestHeader+limitSize*len(r.Limits)+len(r.Name)+len(r.Code)+len(input))
	b = append(b, requestMagic...)
	for _, n := range []uint32{uint32(len(r.Name)), uint32(len(r.Code)), uint32(len(input)), valueBytes, valueDepth, uint32(len(r.Limits)), 0} {
		b = le.AppendUint32(b, n)
	}
	for _, l := range r.Limits {
		b = le.AppendUint64(b, uint64(l.Resource))
		b = le.AppendUint64(b, l.Soft)
		b = le.AppendUint64(b, l.Hard)
	}
	b = append(b, r.Name...)
	b = append(b, r.Code...)
	return append(b, input...), nil
}
