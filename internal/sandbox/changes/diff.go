package changes

import (
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// diff lists what is different between two looks, in the order of a walk.
type diff struct {
	before, after *look
	max           int
	list          []tool.Change
	cut           bool
}

func (d *diff) add(path, change string) {
	if len(d.list) >= d.max {
		d.cut = true
		return
	}
	d.list = append(d.list, tool.Change{Path: strings.ToValidUTF8(path, "\uFFFD"), Change: change})
}

// dir compares one directory that both looks saw, and those below it.
func (d *diff) dir(path string) {
	before, ok := d.before.dirs[path]
	after, ok2 := d.after.dirs[path]
	if !ok || !ok2 {
		return
	}
	for len(before) > 0 || len(after) > 0 {
		if d.cut {
			return
		}
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].name < after[0].name:
			d.all(d.before, path, before[0], tool.Deleted)
			before = before[1:]
		case len(before) == 0 || after[0].name < before[0].name:
			d.all(d.after, path, after[0], tool.Created)
			after = after[1:]
		default:
			d.entry(path, before[0], after[0])
			before, after = before[1:], after[1:]
		}
	}
}

// entry compares one name that both looks saw.
func (d *diff) entry(path string, before, after entry) {
	switch b, a := &before.stamp, &after.stamp; {
	case b.isDir() && a.isDir():
		// Another directory of the same name is compared by what is in it.
		d.dir(path + after.name + "/")
	case b.isDir() || a.isDir():
		d.all(d.before, path, before, tool.Deleted)
		d.all(d.after, path, after, tool.Created)
	case *b != *a:
		d.add(path+after.name, tool.Modified)
	}
}

// all adds an entry and, of a directory, everything below it.
func (d *diff) all(l *look, path string, e entry, change string) {
	d.add(path+e.name, change)
	if !e.stamp.isDir() {
		return
	}
	for _, below := range l.dirs[path+e.name+"/"] {
		if d.cut {
			return
		}
		d.all(l, path+e.name+"/", below, change)
	}
}
