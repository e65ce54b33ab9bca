// Package judge is step 3 for command lines: it reads a line as a shell would
// and says, part by part, what it would do. It judges effects, not names, and
// looks at nothing but the line: what is there is counted by package look.
// What it can't tell is Unknown, never harmless.
package judge

// Line judges a command.
func Line(c Command) Judgement {
	return Judgement{Problem: "It could not be read."}
}
