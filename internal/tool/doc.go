// Package tool is the domain: what a planner asks for, what an operator
// allows, and what an execution leaves behind. It imports the standard
// library only and is imported by every other package.
package tool
