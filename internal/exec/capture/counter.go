package capture

import "unicode/utf8"

// counter computes, over chunks cut anywhere, how many bytes a stream has
// once every byte that belongs to no valid UTF-8 sequence is replaced by
// U+FFFD, which has three.
type counter struct {
	size int64
	tail [utf8.UTFMax]byte // the beginning of a character, not yet complete
	n    int
}

func (c *counter) count(p []byte) {
	for c.n > 0 && len(p) > 0 {
		c.tail[c.n] = p[0]
		c.n++
		p = p[1:]
		for c.n > 0 && utf8.FullRune(c.tail[:c.n]) {
			c.shift(c.one(c.tail[:c.n]))
		}
	}
	if utf8.Valid(p) {
		c.size += int64(len(p))
		return
	}
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			c.n = copy(c.tail[:], p)
			return
		}
		p = p[c.one(p):]
	}
}

// one counts the character or the stray byte that p begins with, and says how long it is.
func (c *counter) one(p []byte) int {
	r, n := utf8.DecodeRune(p)
	if r == utf8.RuneError && n == 1 {
		c.size += int64(len("\uFFFD"))
	} else {
		c.size += int64(n)
	}
	return n
}

func (c *counter) shift(n int) { c.n = copy(c.tail[:], c.tail[n:c.n]) }

// pending is the beginning of a character that the stream ended in.
func (c *counter) pending() []byte { return c.tail[:c.n] }

// drop forgets what is pending.
func (c *counter) drop() { c.n = 0 }

// total is the size, with what is pending replaced byte by byte.
func (c *counter) total() int64 { return c.size + int64(c.n*len("\uFFFD")) }
