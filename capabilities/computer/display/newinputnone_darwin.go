//go:build !cgo

package display

func newQuartzInput(around, *quartz) (input, error) {
	return nil, lacks("This build of Local PC Executor has no mouse and keyboard.")
}
