package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Difference is one setting of one part that is not as the fleet needs it.
type Difference struct {
	Kind    Kind   `json:"kind"`
	Name    string `json:"name"`
	Setting string `json:"setting,omitzero"` // "" when the whole part is missing
	Want    string `json:"want,omitzero"`
	Have    string `json:"have,omitzero"`
	// Fatal: a worker refuses to serve with it, because requests would be
	// lost, stranded or answered twice.
	Fatal bool `json:"fatal,omitzero"`
	// Fixed cannot be changed in place: the part has to be made anew.
	Fixed bool `json:"fixed,omitzero"`
}

// Missing reports whether the whole part is missing.
func (d Difference) Missing() bool { return d.Setting == "" }

func (d Difference) String() string {
	if d.Missing() {
		return fmt.Sprintf("%s %s is missing", d.Kind, d.Name)
	}
	return fmt.Sprintf("%s %s: %s is %s, expected %s", d.Kind, d.Name, d.Setting, cmp.Or(d.Have, "not set"), cmp.Or(d.Want, "not set"))
}

// Part is one stream, bucket or object store as it is on the server.
type Part struct {
	Kind        Kind         `json:"kind"`
	Name        string       `json:"name"`
	Present     bool         `json:"present"`
	Messages    uint64       `json:"messages"`
	Bytes       uint64       `json:"bytes"`
	Consumers   int          `json:"consumers"`
	Replicas    int          `json:"replicas"`
	Subjects    []string     `json:"subjects,omitzero"`
	Differences []Difference `json:"differences,omitzero"`
}

// Show lists the parts of t with what is there and how it differs.
func (c *Client) Show(ctx context.Context, t Topology) ([]Part, error) {
	var list []Part
	for _, p := range t.parts() {
		have, err := c.info(ctx, p)
		if err != nil {
			return nil, err
		}
		shown := Part{Kind: p.kind, Name: p.name, Differences: p.diff(have)}
		if have != nil {
			shown.Present = true
			shown.Messages, shown.Bytes = have.State.Msgs, have.State.Bytes
			shown.Consumers, shown.Replicas = have.State.Consumers, have.Config.Replicas
			if p.kind == KindStream {
				shown.Subjects = have.Config.Subjects
			}
		}
		list = append(list, shown)
	}
	return list, nil
}

// Diff lists what differs from t; nothing when all is as the fleet needs it.
func (c *Client) Diff(ctx context.Context, t Topology) ([]Difference, error) {
	parts, err := c.Show(ctx, t)
	var all []Difference
	for _, p := range parts {
		all = append(all, p.Differences...)
	}
	return all, err
}

// info is the stream of a part; nil when there is none.
func (c *Client) info(ctx context.Context, p part) (*jetstream.StreamInfo, error) {
	s, err := c.js.Stream(ctx, p.stream.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s %s: %w", p.kind, p.name, err)
	}
	return s.CachedInfo(), nil
}

// diff compares what matters to the fleet; an operator may choose the rest
// (placement, compression, metadata).
func (p part) diff(info *jetstream.StreamInfo) []Difference {
	if info == nil {
		return []Difference{{Kind: p.kind, Name: p.name, Fatal: true}}
	}
	var all []Difference
	have, want := info.Config, p.stream
	check := func(setting, want, have string, fatal, fixed bool) {
		if want != have {
			all = append(all, Difference{Kind: p.kind, Name: p.name, Setting: setting, Want: want, Have: have, Fatal: fatal, Fixed: fixed})
		}
	}
	number := func(setting string, want, have int64, fatal, fixed bool) {
		check(setting, limit(want), limit(have), fatal, fixed)
	}
	check("replicas", strconv.Itoa(want.Replicas), strconv.Itoa(have.Replicas), false, false)
	check("max age", want.MaxAge.String(), have.MaxAge.String(), false, false)
	if p.kind == KindBucket {
		number("history", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject, false, false)
	}
	if p.kind != KindStream {
		return all
	}
	if missing := missingSubjects(want.Subjects, have.Subjects); len(missing) > 0 {
		check("subjects", strings.Join(missing, " "), "", true, false)
	}
	check("retention", want.Retention.String(), have.Retention.String(), true, true)
	check("storage", want.Storage.String(), have.Storage.String(), false, true)
	check("discard", want.Discard.String(), have.Discard.String(), want.Discard == jetstream.DiscardNew, false)
	check("duplicate window", want.Duplicates.String(), have.Duplicates.String(), false, false)
	check("republish", republish(want.RePublish), republish(have.RePublish), true, false)
	check("direct get", strconv.FormatBool(want.AllowDirect), strconv.FormatBool(have.AllowDirect), want.AllowDirect, false)
	check("discard new per subject", strconv.FormatBool(want.DiscardNewPerSubject), strconv.FormatBool(have.DiscardNewPerSubject), false, false)
	number("max messages", want.MaxMsgs, have.MaxMsgs, false, false)
	number("max bytes", want.MaxBytes, have.MaxBytes, false, false)
	number("max messages per subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject, false, false)
	number("max message size", int64(want.MaxMsgSize), int64(have.MaxMsgSize), false, false)
	number("max consumers", int64(want.MaxConsumers), int64(have.MaxConsumers), false, true)
	return all
}

// missingSubjects are those of want that have does not list.
func missingSubjects(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(have, s) })
}

// limit shows a bound; servers say -1 where a configuration says nothing.
func limit(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func republish(r *jetstream.RePublish) string {
	if r == nil {
		return ""
	}
	s := r.Source + " to " + r.Destination
	if r.HeadersOnly {
		s += ", headers only"
	}
	return s
}
