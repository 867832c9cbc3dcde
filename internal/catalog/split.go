package catalog

import (
	"bytes"
	"strings"
)

// chunk is the text of one YAML document within a file.
type chunk struct {
	line int // of the file, where the text begins; counts from 1
	text string
}

// split cuts a file into its documents at the lines that begin with the
// marker "---". Inside a document such a line can have no other meaning, so
// that a fault in one document leaves the others readable.
func split(data []byte) []chunk {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text := string(data)
	var chunks []chunk
	start, first := 0, 1 // offset and line of the chunk that is being read
	for offset, line := 0, 1; offset < len(text); line++ {
		end := len(text)
		if n := strings.IndexByte(text[offset:], '\n'); n >= 0 {
			end = offset + n + 1
		}
		if isMarker(text[offset:end]) && offset > start {
			chunks = append(chunks, chunk{first, text[start:offset]})
			start, first = offset, line
		}
		offset = end
	}
	if start < len(text) {
		chunks = append(chunks, chunk{first, text[start:]})
	}
	return chunks
}

func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n"))
}
