package warm

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

// maxComplaints is how much of a server's last words are kept.
const maxComplaints = 2 << 10

// complaints keeps the end of what a server writes to its standard output and
// error, which is for the log only.
type complaints struct {
	pipe *os.File
	done chan struct{}
	mu   sync.Mutex
	last []byte
}

func listen(pipe *os.File) *complaints {
	c := &complaints{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		buf := make([]byte, 1024)
		for {
			n, err := pipe.Read(buf)
			c.mu.Lock()
			c.last = append(c.last, buf[:n]...)
			c.last = c.last[max(0, len(c.last)-maxComplaints):]
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

// close ends the listening, once nobody should be able to write any more.
func (c *complaints) close() {
	_ = c.pipe.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	<-c.done
	_ = c.pipe.Close()
}

// String is what was said, in one line that can follow another text; empty
// when there was nothing.
func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(bytes.TrimSpace(c.last)) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q", bytes.TrimSpace(c.last))
}
