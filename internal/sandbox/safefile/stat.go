package safefile

import (
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Info is what Stat found.
type Info struct {
	Mode    fs.FileMode // type and permissions
	Size    int64
	Links   uint64
	ModTime time.Time
}

// Stat describes what stands at a name without following or opening it; "."
// is the root. A symlink, also as the last component, is ErrSymlink.
func (r *Root) Stat(name string) (Info, error) {
	parts := []string{"."}
	if name != "." {
		var err error
		if parts, err = split(name); err != nil {
			return Info{}, err
		}
	}
	fd, err := r.open(parts, unix.O_PATH)
	if err != nil {
		return Info{}, explain("stat", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, explain("stat", name, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return Info{}, fmt.Errorf("stat %q: %w", name, ErrSymlink)
	}
	return Info{
		Mode:    fileMode(st.Mode),
		Size:    st.Size,
		Links:   uint64(st.Nlink),
		ModTime: time.Unix(st.Mtim.Unix()),
	}, nil
}

func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	for bit, flag := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
