package exec

import (
	"path"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// maxOutputFile bounds an output where no file_size_bytes is in force, in bytes.
const maxOutputFile = 1 << 30

// verifyFiles hashes the outputs, which lie on the host. Each is opened below
// the root without following anything, so that the tool cannot make it mean
// another file.
func (x *execution) verifyFiles() error {
	most := x.task.Limits.FileSizeBytes
	if most == 0 {
		most = maxOutputFile
	}
	for i, output := range x.task.Outputs {
		rel := strings.TrimPrefix(output.HostPath, x.task.Root+"/")
		sum, err := x.root.Hash(rel, most)
		if err != nil {
			return tool.Errorf(tool.SyncFailed, "/outputs/%d: %v", i, err)
		}
		x.result.Files = append(x.result.Files, tool.File{
			ContainerPath: output.ContainerPath,
			HostPath:      path.Join(x.root.given, rel),
			SizeBytes:     sum.Size,
			SHA256:        sum.SHA256,
		})
	}
	return nil
}
