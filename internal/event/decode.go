package event

import (
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// DecodeRequest reads a request in any of the three forms of PROTOCOL.md
// section 2; prefix is that of the fleet's subjects. The bytes of m must not
// change afterwards: Input is part of them. Its errors are
//
//   - *Unreadable: no CloudEvent or no JSON, for the dead letters;
//   - *tool.Error with the code InvalidRequest, which lists every fault by
//     its JSON pointer into the event's JSON form, in at most about 4 KiB;
//   - *Reference: the data lies in an object store.
//
// With an error the Request holds what could be read; it is nil when not even
// an id could, and then nobody can be answered.
func DecodeRequest(m Message, prefix string) (*tool.Request, error) {
	l, err := parseLane(prefix, m.Subject)
	if err != nil {
		return nil, &Unreadable{Reason: err.Error()}
	}
	form, err := formOf(m)
	if err != nil {
		return nil, err
	}
	var e rawEvent
	var f faults
	if form == binary {
		readBinary(m, &e, &f)
	} else if err := readStructured(m.Data, &e); err != nil {
		f.below("", []schemas.Fault{fault(err, "")})
	}
	if len(f) == 0 {
		e.checkRequest(&f)
	}
	if len(f) == 0 {
		if e.data == nil && e.set[dataRef] {
			return refer(l, &e)
		}
		q := newRequest(l, &e.attributes)
		wrong := accept(q, &e)
		if wrong == nil {
			return q, nil
		}
		f = faults{*wrong}
	}
	return explain(m, form, l, f)
}

// checkRequest adds what is wrong with the attributes of a request.
func (a *attributes) checkRequest(f *faults) {
	a.checkEvent(TypeRequest, f)
	if v := a.value[id]; a.set[id] && !tool.ValidName(v) {
		f.attribute(id, "%q: expected 1 to %d characters of A-Z a-z 0-9 _ -", cut(v, maxShown), tool.MaxNameLength)
	}
}

// newRequest is a request of which only subject and attributes are known.
func newRequest(l lane, a *attributes) *tool.Request {
	return &tool.Request{Envelope: a.envelope(), Pool: l.pool, Priority: l.priority, Project: l.project}
}

func refer(l lane, e *rawEvent) (*tool.Request, error) {
	q := newRequest(l, &e.attributes)
	r, err := parseReference(l, &e.attributes)
	if err != nil {
		var f faults
		f.attribute(dataRef, "%q: %v", cut(e.value[dataRef], 3*maxShown), err)
		return q, f.error()
	}
	return q, r
}

// accept reads the data of an event into q, which knows the rest. What it
// returns is the first thing that is wrong.
func accept(q *tool.Request, e *rawEvent) *schemas.Fault {
	if e.data == nil {
		return &schemas.Fault{Pointer: "/data", Message: "missing, but required"}
	}
	project := q.Project
	if err := readData(e.data, q); err != nil {
		wrong := fault(err, "/data")
		return &wrong
	}
	var f faults
	agree(&e.attributes, q.Project, project, q.Name(), &f)
	if len(f) > 0 {
		return &f[0]
	}
	return nil
}

// agree adds where data, attributes and subject contradict each other.
func agree(a *attributes, project, subjectProject, name string, f *faults) {
	if project != subjectProject {
		f.add("/data/project", "%q: expected %q, the last token of the subject", cut(project, maxShown), subjectProject)
	}
	if a.set[subject] && !a.bad[subject] && a.value[subject] != name {
		f.attribute(subject, "%q: expected %q, the name of the tool", cut(a.value[subject], maxShown), cut(name, maxShown))
	}
}
