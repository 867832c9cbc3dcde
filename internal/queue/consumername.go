package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// maxConsumerName is what servers take, in bytes.
const maxConsumerName = 255

// ConsumerName is the durable consumer of one lane of requests:
// <pool>-<priority>-<project>. Where another lane would have the same name
// ("a"/"high-b" and "a-high"/"b"), or the name is too long, a hash of the
// lane follows.
func ConsumerName(pool string, priority tool.Priority, project string) string {
	name := pool + "-" + string(priority) + "-" + project
	if len(name) <= maxConsumerName && !ambiguous(name) {
		return name
	}
	sum := sha256.Sum256([]byte(pool + "." + string(priority) + "." + project))
	suffix := "-" + hex.EncodeToString(sum[:8])
	return name[:min(len(name), maxConsumerName-len(suffix))] + suffix
}

// ambiguous reports whether more than one lane could have the name.
func ambiguous(name string) bool {
	readings := 0
	for _, priority := range tool.Priorities {
		sep := "-" + string(priority) + "-"
		for i := 1; i < len(name)-len(sep); i++ {
			if strings.HasPrefix(name[i:], sep) {
				readings++
			}
		}
	}
	return readings > 1
}
