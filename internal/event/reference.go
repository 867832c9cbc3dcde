package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// MaxReferenced is how large the data behind a dataref may be, in bytes.
const MaxReferenced = 64 << 20

// maxExplained is how large data may be for all its faults to be listed, in
// bytes; beyond it only the first one is told.
const maxExplained = 1 << 20

// Reference is the error of a request that is right so far, but whose data
// lies in an object store (claim check, PROTOCOL.md section 2, dataref). Who
// has the store fetches the object and goes on with Decode.
type Reference struct {
	Project string
	// Bucket is the object store that the planner named. It ends in
	// _inputs_<project>, but whether it is the fleet's own is for the caller
	// to check: fetch from the store of Project, never from this name.
	Bucket string
	Object string
	SHA256 string // lower-case hex

	lane       lane
	attributes attributes
}

func (r *Reference) Error() string {
	return fmt.Sprintf("the data is by reference: object %s of %s", r.Object, r.Bucket)
}

// Refuse is the error of the result when the object cannot be had: missing,
// too large, or in a store that is not the project's.
func (r *Reference) Refuse(why string) *tool.Error {
	var f faults
	f.attribute(dataRef, "object %s of %s: %s", r.Object, r.Bucket, why)
	return f.error()
}

// Decode goes on with what was fetched. Its errors are *tool.Error with the
// code InvalidRequest; the Request is never nil, and with an error it holds
// what could be read. Nothing of an object with another hash is quoted.
func (r *Reference) Decode(data []byte) (*tool.Request, error) {
	q := r.request()
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != r.SHA256 {
		return q, r.Refuse("its sha256 is not that of the dataref")
	}
	e := &rawEvent{attributes: r.attributes, data: data}
	first := accept(q, e)
	if first == nil {
		return q, nil
	}
	q = r.request()
	var f faults
	if len(data) <= maxExplained {
		i, value, err := inspect(data, MaxDepth)
		if err != nil {
			f.add("/data", "no JSON: %v", err)
		} else {
			f.below("/data", i.faults)
			explainData(q, e, value, &f)
		}
	}
	if len(f) == 0 {
		f = faults{*first}
	}
	return q, f.error()
}

func (r *Reference) request() *tool.Request { return newRequest(r.lane, &r.attributes) }

// parseReference reads nats-obj://<bucket>/<object>?sha256=<hex>; the bucket
// has to be one of the project's inputs.
func parseReference(l lane, a *attributes) (*Reference, error) {
	wrong := fmt.Errorf("expected nats-obj://<prefix>_inputs_%s/<request id>?sha256=<64 hexadecimal digits>", l.project)
	u, err := url.Parse(a.value[dataRef])
	if err != nil || u.Scheme != "nats-obj" || u.User != nil || u.Fragment != "" {
		return nil, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(query) != 1 || len(query["sha256"]) != 1 {
		return nil, wrong
	}
	r := &Reference{
		Project: l.project, Bucket: u.Host, Object: strings.TrimPrefix(u.Path, "/"),
		SHA256: strings.ToLower(query.Get("sha256")), lane: l, attributes: *a,
	}
	if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != sha256.Size || !tool.ValidName(r.Object) {
		return nil, wrong
	}
	owner, ours := strings.CutSuffix(r.Bucket, "_inputs_"+l.project)
	if !ours || !tool.ValidName(owner) {
		return nil, fmt.Errorf("not an object of this project: %w", wrong)
	}
	return r, nil
}
