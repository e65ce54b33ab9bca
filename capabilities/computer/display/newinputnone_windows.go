//go:build !cgo

package display

func newWin32Input(around) (input, error) {
	return nil, lacks("This build of Local PC Executor has no mouse and keyboard.")
}
