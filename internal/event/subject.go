package event

import (
	"fmt"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// lane is what the subject of a request says: what NATS permissions enforce.
type lane struct {
	pool     string
	priority tool.Priority
	project  string
}

// parseLane reads <prefix>.request.<pool>.<priority>.<project>.
func parseLane(prefix, subject string) (lane, error) {
	rest, ok := strings.CutPrefix(subject, prefix+".request.")
	pool, rest, ok1 := strings.Cut(rest, ".")
	priority, project, ok2 := strings.Cut(rest, ".")
	if !ok || !ok1 || !ok2 {
		return lane{}, fmt.Errorf("subject %q: expected %s.request.<pool>.<priority>.<project>", cut(subject, maxShown), prefix)
	}
	l := lane{pool, tool.Priority(priority), project}
	if err := tool.CheckName("pool in the subject", l.pool); err != nil {
		return lane{}, err
	}
	switch l.priority {
	case tool.High, tool.Normal, tool.Low:
	default:
		return lane{}, fmt.Errorf("priority in the subject %q: expected high, normal or low", cut(priority, maxShown))
	}
	if err := tool.CheckName("project in the subject", l.project); err != nil {
		return lane{}, err
	}
	return l, nil
}

func requestSubject(prefix string, l lane) string {
	return prefix + ".request." + l.pool + "." + string(l.priority) + "." + l.project
}

func resultSubject(prefix, project, id string) string {
	return prefix + ".result." + project + "." + id
}

func liveSubject(prefix, project, id string) string { return prefix + ".event." + project + "." + id }
