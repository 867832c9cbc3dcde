// Package cgroup bounds and measures process trees by control groups: version
// 2 where a subtree is delegated to the worker, version 1 where the worker may
// write its hierarchies, both side by side where a machine has both.
//
// A worker has one directory per hierarchy, below the group that it runs in
// itself, and in it one group per tool. The directory's name tells which
// process it belongs to, so that a later worker finds and removes what a
// killed one left behind.
package cgroup
