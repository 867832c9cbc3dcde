// Package guard keeps the protected paths of a project as they were where the
// kernel cannot: paths that did not exist when a tool began, over which nothing
// can be mounted, and, at the levels without mounts of their own, all of them.
//
// What a tool made or changed there is set aside under another name, where no
// program looks for it, and what was there before is put back, before the
// answer is out. Nothing is deleted: somebody else may work in the project at
// the same time, and his work must not be lost for a tool's.
package guard
