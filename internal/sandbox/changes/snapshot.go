package changes

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/tool"
)

// Limits bounds what is looked at and what is listed. The second look is on the
// way of an answer that has to be out soon after its timeout, so it is short of
// time however large a tree the execution left. A zero member means the
// default.
type Limits struct {
	Entries int           // entries per look; 100,000
	Depth   int           // levels of directories; 128
	Time    time.Duration // per look; 150 ms
	Changes int           // listed changes; 1,000
}

func (l Limits) withDefaults() Limits {
	l.Entries = cmp.Or(l.Entries, 100_000)
	l.Depth = cmp.Or(l.Depth, 128)
	l.Time = cmp.Or(l.Time, 150*time.Millisecond)
	l.Changes = cmp.Or(l.Changes, 1000)
	return l
}

// Snapshot is a directory as it was. Close it.
type Snapshot struct {
	root   *os.File
	limits Limits
	before *look
}

// Take looks at the directory with that absolute path; it must not be a
// symlink.
func Take(path string, l Limits) (*Snapshot, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open directory %s: %w", path, err)
	}
	s := &Snapshot{root: os.NewFile(uintptr(fd), path), limits: l.withDefaults()}
	if s.before, err = take(s.root, s.limits); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Since looks again and lists what is different, sorted by path. truncated:
// there may be more. Names that are no UTF-8 have U+FFFD in the place of what
// is none.
func (s *Snapshot) Since() (list []tool.Change, truncated bool, err error) {
	after, err := take(s.root, s.limits)
	if err != nil {
		return nil, false, err
	}
	d := &diff{before: s.before, after: after, max: s.limits.Changes}
	d.dir("")
	return d.list, d.cut || s.before.cut || after.cut, nil
}

// Close gives the directory's descriptor back.
func (s *Snapshot) Close() error {
	if err := s.root.Close(); err != nil {
		return fmt.Errorf("close directory: %w", err)
	}
	return nil
}
