package consume

import "github.com/toolworker/toolworker/internal/tool"

// Lane is one queue of requests that are served in their order: those of one
// pool, priority and project.
type Lane struct {
	Pool     string
	Priority tool.Priority
	Project  string
}

// rank is the lane's priority as an index into tool.Priorities; -1 for a
// priority that does not exist.
func (l Lane) rank() int {
	for i, p := range tool.Priorities {
		if l.Priority == p {
			return i
		}
	}
	return -1
}
