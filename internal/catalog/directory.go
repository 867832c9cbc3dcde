package catalog

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/sourcegraph/conc/iter"
)

// directory reads the catalogue from YAML files. It is not safe for
// concurrent use.
type directory struct {
	dir  string
	seen []fileState
	// unsure: a file was modified so shortly before it was read that a later
	// change could leave the same time behind; it is read once more.
	unsure bool
	loaded bool
	// cache has the documents of the last load: a reload parses only those
	// that changed.
	cache map[documentKey]*document
}

// Files are given time to become complete: one that is just being written
// would otherwise be read cut off, and its last entries be missed.
const (
	settleStep = 25 * time.Millisecond
	settleMost = 40 // steps
)

// clockGrain is how far apart two changes must be for their times to differ
// on every file system.
const clockGrain = 2 * time.Second

// changed reports whether the files differ from those last loaded, and
// remembers their state.
func (d *directory) changed(ctx context.Context) (bool, error) {
	files, err := findFiles(d.dir)
	if err != nil {
		return false, err
	}
	if d.loaded && unchanged(files, d.seen) && !d.unsure {
		return false, nil
	}
	for range settleMost {
		if !d.loaded || unchanged(files, d.seen) {
			break
		}
		d.seen = files
		select {
		case <-ctx.Done():
			d.seen = nil // whatever is there then is a change
			return false, context.Cause(ctx)
		case <-time.After(settleStep):
		}
		if files, err = findFiles(d.dir); err != nil {
			d.seen = nil
			return false, err
		}
	}
	now := time.Now()
	d.seen, d.unsure = files, false
	for _, f := range files {
		if age := now.Sub(f.modified); age > -clockGrain && age < clockGrain {
			d.unsure = true
		}
	}
	return true, nil
}

// job is one document to read.
type job struct {
	file  string
	chunk chunk
}

// load reads every file. What is refused keeps its entry in prev.
func (d *directory) load(prev *Snapshot) (*Snapshot, Faults) {
	c := newCollation()
	var jobs []job
	for _, f := range d.seen {
		data, err := readFile(f.path)
		if err != nil {
			c.refuse(f.path, "", "", Fault{Place: Place{File: f.path}, Reason: err.Error()})
			continue
		}
		for _, chunk := range split(data) {
			jobs = append(jobs, job{f.path, chunk})
		}
	}

	mapper := iter.Mapper[job, *document]{MaxGoroutines: readers(d.loaded)}
	documents := mapper.Map(jobs, func(j *job) *document {
		if doc, ok := d.cache[keyOf(j.file, j.chunk.text)]; ok {
			return doc
		}
		return readDocument(keyOf(j.file, "").dir, j.chunk.text)
	})

	cache := make(map[documentKey]*document, len(jobs))
	for i, doc := range documents {
		j := jobs[i]
		cache[keyOf(j.file, j.chunk.text)] = doc
		switch {
		case doc == nil: // only comments
		case doc.entry != nil:
			c.add(doc.at(j.file, j.chunk.line))
		default:
			c.refuse(j.file, doc.kind, doc.name, doc.faultsAt(j.file, j.chunk.line)...)
		}
	}
	d.cache, d.loaded = cache, true
	return c.snapshot(prev), c.faults
}

// readers is how many documents are read at a time. Once something is loaded
// requests are being served, which a reload must not hold up.
func readers(loaded bool) int {
	if loaded {
		return max(1, runtime.GOMAXPROCS(0)/2)
	}
	return runtime.GOMAXPROCS(0)
}

// refresh loads the files if they changed; a nil snapshot means they did not.
func (d *directory) refresh(ctx context.Context, prev *Snapshot) (*Snapshot, Faults, error) {
	changed, err := d.changed(ctx)
	if err != nil || !changed {
		return nil, nil, err
	}
	next, faults := d.load(prev)
	return next, faults, nil
}

// LoadDirectory reads a directory once. Faults are returned beside the
// snapshot of the good entries; the error is one of the directory itself.
func LoadDirectory(dir string) (*Snapshot, Faults, error) {
	d := &directory{dir: dir}
	next, faults, err := d.refresh(context.Background(), &Snapshot{})
	if err != nil {
		return nil, nil, err
	}
	if next == nil {
		return nil, nil, fmt.Errorf("read catalogue directory %s: nothing was read", dir)
	}
	return next, faults, nil
}
