package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// refresh is how often a progress bar is drawn at most.
const refresh = 100 * time.Millisecond

// Progress is a bar for work of many steps. Where its writer is no terminal
// it writes nothing at all. It may be used by several goroutines.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer
	what  string
	total int // 0: unknown
	done  int
	bad   int
	drawn time.Time
	start time.Time
	width int
}

// NewProgress makes a bar for total steps, 0 when nobody knows.
func NewProgress(w io.Writer, what string, total int) *Progress {
	p := &Progress{what: what, total: total, start: time.Now()}
	if Is(w) {
		p.w, p.width = w, Width(w)
	}
	return p
}

// Step counts one step as done.
func (p *Progress) Step(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if !ok {
		p.bad++
	}
	if now := time.Now(); p.w != nil && now.Sub(p.drawn) >= refresh {
		p.drawn = now
		p.draw()
	}
}

// Finish clears the bar from the screen.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func (p *Progress) draw() {
	fmt.Fprint(p.w, "\r\x1b[K"+p.line(time.Since(p.start)))
}

// line is the bar as it looks after elapsed.
func (p *Progress) line(elapsed time.Duration) string {
	rate := float64(p.done) / max(elapsed.Seconds(), 0.001)
	tail := fmt.Sprintf(" %d", p.done)
	if p.total > 0 {
		tail += fmt.Sprintf("/%d", p.total)
	}
	tail += fmt.Sprintf(" %.0f/s", rate)
	if p.bad > 0 {
		tail += fmt.Sprintf(", %d failed", p.bad)
	}
	room := p.width - len(p.what) - len(tail) - 4
	if p.total == 0 || room < 10 {
		return p.what + tail
	}
	room = min(room, 40)
	full := min(room*p.done/p.total, room)
	return p.what + " [" + strings.Repeat("=", full) + strings.Repeat(" ", room-full) + "]" + tail
}
