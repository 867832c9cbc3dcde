package catalog

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/pool"
)

// Applied says what an apply did, by key.
type Applied struct {
	Revision  uint64   `json:"revision"`
	Changed   []string `json:"changed"` // new ones included
	Unchanged []string `json:"unchanged"`
}

// writers is how many entries are written at a time.
const writers = 16

// Apply puts the entries of a directory in force, in one step for everybody
// who reads the bucket; entries of the bucket that are not in the directory
// stay. Nothing is stored when one entry is bad: the error is then Faults.
// Applying the same directory again changes nothing.
func (s *Store) Apply(ctx context.Context, dir string) (*Applied, error) {
	snapshot, faults, err := LoadDirectory(dir)
	if err != nil {
		return nil, err
	}
	if faults = append(faults, portable(snapshot)...); len(faults) > 0 {
		faults.sort()
		return nil, faults
	}
	values := map[string][]byte{}
	for _, entries := range []map[string]*entry{snapshot.tools, snapshot.projects} {
		for _, e := range entries {
			values[keyFor(e.kind, e.name)] = e.json
		}
	}
	var applied Applied
	applied.Revision, err = s.commit(ctx, func(ctx context.Context, entries map[string]uint64) error {
		written, err := s.write(ctx, values)
		if err != nil {
			return err
		}
		applied.Changed, applied.Unchanged = []string{}, []string{}
		for _, key := range slices.Sorted(maps.Keys(written)) {
			if entries[key] == written[key] {
				applied.Unchanged = append(applied.Unchanged, key)
			} else {
				applied.Changed = append(applied.Changed, key)
			}
		}
		maps.Copy(entries, written)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", dir, err)
	}
	return &applied, nil
}

// write stores the values that are not there yet, and returns the revisions
// of all. What an interrupted apply has left behind is taken over, so that
// repeating it does not push anything out of the history.
func (s *Store) write(ctx context.Context, values map[string][]byte) (map[string]uint64, error) {
	records, err := scan(ctx, s.kv, false, entryFilters...)
	if err != nil {
		return nil, err
	}
	written := make(map[string]uint64, len(values))
	for _, rec := range records {
		if value, ok := values[rec.key]; ok && !rec.deleted && string(value) == string(rec.value) {
			written[rec.key] = rec.revision
		}
	}
	var missing []string
	for key := range values {
		if _, ok := written[key]; !ok {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	revisions := make([]uint64, len(missing))
	p := pool.New().WithMaxGoroutines(writers).WithContext(ctx).WithCancelOnError().WithFirstError()
	for i, key := range missing {
		p.Go(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			var err error
			if revisions[i], err = s.kv.Put(ctx, key, values[key]); err != nil {
				return fmt.Errorf("write %s: %w", key, err)
			}
			return nil
		})
	}
	if err := p.Wait(); err != nil {
		return nil, err
	}
	for i, key := range missing {
		written[key] = revisions[i]
	}
	return written, nil
}

// portable refuses tools with files beside their entry: the bucket carries
// entries, and workers that read them there have no such directory.
func portable(s *Snapshot) Faults {
	var faults Faults
	for _, e := range s.tools {
		for i, arg := range e.tool.Command {
			if besideEntry(e.tool.Dir, arg) || i == 0 && !filepath.IsAbs(arg) && strings.Contains(arg, "/") {
				faults = append(faults, Fault{Place: e.place, Entry: title(e.kind, e.name), Reason: fmt.Sprintf(
					"/command/%d: %q is a file beside the entry, which the bucket cannot carry: expected code, or a command that every worker has", i, arg)})
			}
		}
	}
	return faults
}

// besideEntry reports whether an argument of a command names a file that lies
// beside its entry.
func besideEntry(dir, arg string) bool {
	if !filepath.IsLocal(arg) {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, arg))
	return err == nil && info.Mode().IsRegular()
}
