package shim

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// procfs is the /proc by which a shim sees its tree.
type procfs struct {
	root *os.Root
	// foreign: its numbers are those of an outer pid namespace, for the room
	// has no /proc of its own. Then what is below this process is found by
	// going down from it, and no number is fit for a signal.
	foreign bool
}

func openProc() (*procfs, error) {
	root, err := os.OpenRoot("/proc")
	if err != nil {
		return nil, err
	}
	return &procfs{root: root}, nil
}

func (p *procfs) close() { _ = p.root.Close() }

func (p *procfs) read(name string) (string, bool) {
	b, err := p.root.ReadFile(name)
	return string(b), err == nil
}

func (p *procfs) list(name string) []string {
	f, err := p.root.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// self is this process's number.
func (p *procfs) self() int {
	target, err := p.root.Readlink("self")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(target)
	return pid
}

// treeSize is the resident memory and the number of threads of all descendants.
func (p *procfs) treeSize() (bytes, tasks int64) {
	for _, pid := range p.descendants() {
		name := strconv.Itoa(pid)
		statm, ok := p.read(name + "/statm")
		f := strings.Fields(statm)
		if !ok || len(f) < 2 {
			continue
		}
		pages, _ := strconv.ParseInt(f[1], 10, 64)
		bytes += pages * int64(os.Getpagesize())
		tasks += p.threads(name)
	}
	return bytes, tasks
}

// threads counts those of a process, by the links of its task directory.
func (p *procfs) threads(name string) int64 {
	info, err := p.root.Stat(name + "/task")
	if err != nil {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 2 {
		return int64(st.Nlink) - 2
	}
	return 1
}

// tasksOf counts the threads of all visible processes of a user, this one's
// included: the kernel counts RLIMIT_NPROC so. The owner of a process's files
// will not do, for those of one that is not dumpable are root's.
func (p *procfs) tasksOf(uid int) int64 {
	total := int64(0)
	for _, pid := range append(p.processes(), p.self()) {
		status, _ := p.read(strconv.Itoa(pid) + "/status")
		if firstNumber(status, "Uid:") == int64(uid) {
			total += firstNumber(status, "Threads:")
		}
	}
	return total
}

// firstNumber is the first one of a line of /proc/pid/status, -1 without one.
func firstNumber(status, line string) int64 {
	_, rest, ok := strings.Cut(status, "\n"+line)
	f := strings.Fields(rest)
	if !ok || len(f) == 0 {
		return -1
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// processes are all that can be seen, but this one.
func (p *procfs) processes() []int {
	self := p.self()
	var pids []int
	for _, n := range p.list(".") {
		if pid, err := strconv.Atoi(n); err == nil && pid != self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants are all processes below this one. The init of a pid namespace
// has no others beside it.
func (p *procfs) descendants() []int {
	if os.Getpid() == 1 && !p.foreign {
		return p.processes()
	}
	all := p.childrenOf("self")
	for i := 0; i < len(all); i++ {
		all = append(all, p.childrenOf(strconv.Itoa(all[i]))...)
	}
	return all
}

// childrenOf are those of a process.
func (p *procfs) childrenOf(name string) []int {
	threads := p.list(name + "/task")
	var pids []int
	supported := len(threads) == 0
	for _, t := range threads {
		list, ok := p.read(name + "/task/" + t + "/children")
		if !ok {
			continue
		}
		supported = true
		for f := range strings.FieldsSeq(list) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if !supported {
		return p.childrenByScan(name)
	}
	return pids
}

// childrenByScan is for kernels without CONFIG_PROC_CHILDREN.
func (p *procfs) childrenByScan(name string) []int {
	if name == "self" {
		name = strconv.Itoa(p.self())
	}
	var pids []int
	for _, pid := range p.processes() {
		// pid (name, which may hold anything) state ppid
		stat, _ := p.read(strconv.Itoa(pid) + "/stat")
		if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 1 && f[1] == name {
			pids = append(pids, pid)
		}
	}
	return pids
}
