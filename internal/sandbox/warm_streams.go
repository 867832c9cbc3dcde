package sandbox

import (
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/python"
)

// request is the frame of a run whose process was started before it: the
// process sets the limits itself that a cold start is born with.
func (r *runner) request(s *Spec) ([]byte, error) {
	request := python.Request{Name: s.Name, Code: s.Code, Input: s.Input}
	for _, l := range launch.Limits(s.Limits, r.cgroups.CountsCPU()) {
		request.Limits = append(request.Limits, python.Rlimit{Resource: l.Resource, Soft: l.Soft, Hard: l.Hard})
	}
	return request.Frame()
}

// newForkStreams opens the pipes that a run of a fork server gets: the output
// and the value.
func newForkStreams(s *Spec) (*streams, error) {
	st := &streams{}
	err := st.drain(s.Stdout)
	if err == nil {
		err = st.collect()
	}
	if err != nil {
		st.closeTool()
		st.abandon()
		return nil, err
	}
	return st, nil
}
