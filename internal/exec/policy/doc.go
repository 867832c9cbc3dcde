// Package policy is what the operator allows, whatever a request asks for:
// the limits in force, the check of projects and tools, and the environment
// variables of a tool. Nothing that a planner writes can widen it.
package policy
