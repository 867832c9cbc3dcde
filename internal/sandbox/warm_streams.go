package sandbox

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
