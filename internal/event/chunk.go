package event

import (
	"unicode/utf8"
)

// chunk is a piece of the output of a stream.
type chunk struct {
	offset int64 // raw bytes before
	text   []byte
}

// liveStream cuts the raw output of a stream into chunks of whole characters.
type liveStream struct {
	offset  int64 // of pending
	pending []byte
}

// write gives the chunks of p, which follows offset raw bytes. Where bytes
// were left out between, what is pending comes first.
func (s *liveStream) write(offset int64, p []byte) []chunk {
	var chunks []chunk
	if s.offset+int64(len(s.pending)) != offset {
		chunks = s.flush()
		s.offset = offset
	}
	rest := p
	if len(s.pending) > 0 {
		rest = append(s.pending, p...)
	}
	chunks = s.chunks(chunks, rest[:len(wholeRunes(rest))])
	s.pending = append([]byte(nil), rest[len(wholeRunes(rest)):]...)
	return chunks
}

// flush gives what is pending as it is.
func (s *liveStream) flush() []chunk {
	chunks := s.chunks(nil, s.pending)
	s.pending = nil
	return chunks
}

// chunks appends raw as chunks of at most MaxChunk bytes of text.
func (s *liveStream) chunks(chunks []chunk, raw []byte) []chunk {
	for len(raw) > 0 {
		text := make([]byte, 0, min(len(raw), MaxChunk))
		used := 0
		for used < len(raw) {
			r, size := utf8.DecodeRune(raw[used:])
			if len(text)+utf8.RuneLen(r) > MaxChunk {
				break
			}
			text = utf8.AppendRune(text, r)
			used += size
		}
		chunks = append(chunks, chunk{s.offset, text})
		s.offset += int64(used)
		raw = raw[used:]
	}
	return chunks
}
