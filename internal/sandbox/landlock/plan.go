package landlock

// Plan is a ruleset in numbers, for a program that makes it by itself, of
// paths that only it can see.
type Plan struct {
	FS     uint64     `json:"fs"` // handled rights
	Net    uint64     `json:"net"`
	Scoped uint64     `json:"scoped"`
	Rules  []PlanRule `json:"rules"`
}

// PlanRule allows what is below a path.
type PlanRule struct {
	Path     string `json:"path"`
	Dir      uint64 `json:"dir"`  // rights if it is a directory
	File     uint64 `json:"file"` // and if it is none
	Optional bool   `json:"optional"`
}

// Plan gives the rules in numbers for the kernel's version of Landlock, nil
// when it has none.
func (r *Rules) Plan() *Plan {
	abi := ABI()
	if abi == 0 {
		return nil
	}
	attr := handled(abi, r.NoTCP)
	p := &Plan{FS: attr.Handled_access_fs, Net: attr.Handled_access_net, Scoped: attr.Scoped}
	add := func(paths []string, access uint64, optional bool) {
		for _, path := range paths {
			p.Rules = append(p.Rules, PlanRule{path, access & p.FS, access & p.FS & ofFiles, optional})
		}
	}
	const all = ^uint64(0)
	add(r.Read, read, true)
	add(r.Write, all&^never, false)
	add(r.Devices, device, true)
	return p
}
