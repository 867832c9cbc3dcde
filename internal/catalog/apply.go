package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sourcegraph/conc/pool"
)

// Applied says what an apply did, by key.
type Applied struct {
	Revision  uint64   `json:"revision"`
	Changed   []string `json:"changed"` // new ones included
	Unchanged []string `json:"unchanged"`
}

// parcel is what an apply brings to the bucket.
type parcel struct {
	entries map[string][]byte  // JSON by key
	files   map[string]fileSet // by key of their entry
	content map[string][]byte  // of the files, by key
}

// Apply puts the entries of a directory in force, in one step for everybody
// who reads the bucket; entries of the bucket that are not in the directory
// stay. Files that a command names beside its entry are carried along, up to
// 512 KiB each. Nothing is stored when one entry is bad: the error is then
// Faults. Applying the same directory again changes nothing.
func (s *Store) Apply(ctx context.Context, dir string) (*Applied, error) {
	snapshot, faults, err := LoadDirectory(dir)
	if err != nil {
		return nil, err
	}
	p, more := pack(snapshot)
	if faults = append(faults, more...); len(faults) > 0 {
		faults.sort()
		return nil, faults
	}
	var applied Applied
	applied.Revision, err = s.commit(ctx, func(ctx context.Context, m *manifest) error {
		written, err := s.deliver(ctx, p, m)
		if err != nil {
			return err
		}
		applied.Changed, applied.Unchanged = []string{}, []string{}
		for _, key := range slices.Sorted(maps.Keys(written)) {
			if m.Entries[key] == written[key] && maps.Equal(m.Files[key], p.files[key]) {
				applied.Unchanged = append(applied.Unchanged, key)
			} else {
				applied.Changed = append(applied.Changed, key)
			}
			m.set(key, written[key], p.files[key])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", dir, err)
	}
	s.sweep(ctx, unusedFor)
	return &applied, nil
}

// pack takes what the bucket needs from the entries of a directory.
func pack(s *Snapshot) (*parcel, Faults) {
	p := &parcel{entries: map[string][]byte{}, files: map[string]fileSet{}, content: map[string][]byte{}}
	var faults Faults
	for _, entries := range []map[string]*entry{s.tools, s.projects} {
		for _, e := range entries {
			key := keyFor(e.kind, e.name)
			p.entries[key] = e.json
			if e.tool == nil {
				continue
			}
			files, err := besideEntry(e.tool)
			if err != nil {
				faults = append(faults, Fault{Place: e.place, Entry: title(e.kind, e.name), Reason: err.Error()})
			}
			for name, content := range files {
				digest := digestOf(content)
				if p.files[key] == nil {
					p.files[key] = fileSet{}
				}
				p.files[key][name] = digest
				p.content[filePrefix+digest] = content
			}
		}
	}
	return p, faults
}

// deliver stores what is not there yet, files first, and returns the revisions
// of the entries. m is what is in force.
func (s *Store) deliver(ctx context.Context, p *parcel, m *manifest) (map[string]uint64, error) {
	used := m.content()
	content := map[string][]byte{}
	for key, c := range p.content {
		// One that is there and not in use is written again: it could be
		// swept away before the commit.
		if !used[key] {
			content[key] = c
		}
	}
	if _, err := s.put(ctx, content); err != nil {
		return nil, err
	}
	return s.write(ctx, p.entries)
}

// writers is how many values are written at a time.
const writers = 16

// write stores the entries that are not there yet, and returns the revisions
// of all. What an interrupted apply has left behind is taken over, so that
// repeating it does not push anything out of the history.
func (s *Store) write(ctx context.Context, entries map[string][]byte) (map[string]uint64, error) {
	records, err := scan(ctx, s.kv, false, entryFilters...)
	if err != nil {
		return nil, err
	}
	there := map[string]uint64{}
	for _, rec := range records {
		if value, ok := entries[rec.key]; ok && !rec.deleted && string(value) == string(rec.value) {
			there[rec.key] = rec.revision
		}
	}
	missing := maps.Clone(entries)
	maps.DeleteFunc(missing, func(key string, _ []byte) bool { return there[key] != 0 })
	written, err := s.put(ctx, missing)
	if err != nil {
		return nil, err
	}
	maps.Copy(written, there)
	return written, nil
}

// put writes values and returns their revisions.
func (s *Store) put(ctx context.Context, values map[string][]byte) (map[string]uint64, error) {
	keys := slices.Sorted(maps.Keys(values))
	revisions := make([]uint64, len(keys))
	p := pool.New().WithMaxGoroutines(writers).WithContext(ctx).WithCancelOnError().WithFirstError()
	for i, key := range keys {
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
	written := make(map[string]uint64, len(keys))
	for i, key := range keys {
		written[key] = revisions[i]
	}
	return written, nil
}

// unusedFor is how long a file stays that no entry in force has: an apply that
// is under way may need it.
const unusedFor = 24 * time.Hour

// sweep removes files that no entry in force has, written at least so long
// ago. What it cannot do the next one does.
func (s *Store) sweep(ctx context.Context, age time.Duration) {
	now, err := readState(ctx, s.kv)
	if err != nil || now.manifest == nil {
		return
	}
	records, err := scan(ctx, s.kv, false, filePrefix+"*")
	if err != nil {
		return
	}
	used := now.manifest.content()
	for _, rec := range records {
		if !rec.deleted && !used[rec.key] && time.Since(rec.written) >= age {
			_ = s.kv.Purge(ctx, rec.key, jetstream.LastRevision(rec.revision))
		}
	}
}
