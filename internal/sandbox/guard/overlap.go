package guard

import (
	"strconv"
	"strings"
	"sync"
)

// Runs of one project overlap. What one of them did to a protected path must
// not be what the next one finds there and puts back: all that overlap share
// what the first of them remembered.
var overlapping = struct {
	sync.Mutex
	shares map[string]*share
}{shares: map[string]*share{}}

// share is a Guard and the runs that share it.
type share struct {
	runs int // of overlapping, and counted under its lock
	once sync.Once
	*Guard
	err error
	mu  sync.Mutex // one restores at a time
}

// Watch is one run's hold on the protected paths of its project.
type Watch struct {
	key   string
	share *share
}

// New looks at the paths, slash-separated and relative to dir, before a run;
// call Restore after it, once. With mounts, the kernel protects what Paths
// gives as far as it exists and is no link; without, what exists is remembered
// with its content, which fails when it is larger than MaxBytes or has more
// than MaxEntries.
func New(dir string, protect []string, mounts bool) (*Watch, error) {
	if len(protect) == 0 {
		return &Watch{}, nil
	}
	w := &Watch{key: strings.Join(append([]string{strconv.FormatBool(mounts), dir}, protect...), "\x00")}
	overlapping.Lock()
	if w.share = overlapping.shares[w.key]; w.share == nil {
		w.share = &share{}
		overlapping.shares[w.key] = w.share
	}
	w.share.runs++
	overlapping.Unlock()
	w.share.once.Do(func() { w.share.Guard, w.share.err = look(dir, protect, mounts) })
	if w.share.err != nil {
		w.leave()
		return nil, w.share.err
	}
	return w, nil
}

// Paths are those of the function Paths, as they were when the first of the
// overlapping runs began.
func (w *Watch) Paths() []string {
	if w.share == nil {
		return nil
	}
	return w.share.all
}

// Restore undoes what was done to the paths, once the tool is dead. It gives
// the names under which it set things aside.
func (w *Watch) Restore() (aside []string, err error) {
	if w.share == nil {
		return nil, nil
	}
	defer w.leave()
	w.share.mu.Lock()
	defer w.share.mu.Unlock()
	return w.share.restore()
}

// leave forgets what was remembered when the last run has left.
func (w *Watch) leave() {
	overlapping.Lock()
	defer overlapping.Unlock()
	if w.share.runs--; w.share.runs == 0 {
		delete(overlapping.shares, w.key)
	}
}
