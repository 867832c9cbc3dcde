package shim

import "os"

// RemoveTree removes what a tool left, also directories that it locked.
func RemoveTree(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	unlock(root, ".")
	_ = root.Close()
	_ = os.RemoveAll(dir)
}

func unlock(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	f, err := root.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if e.IsDir() {
				unlock(root, name+"/"+e.Name())
			}
		}
		if err != nil {
			return
		}
	}
}
