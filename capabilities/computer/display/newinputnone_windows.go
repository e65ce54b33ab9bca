//go:build !cgo

package display

import "errors"

func newWin32Input(around) (input, error) {
	return nil, errors.New("This build of Local PC Executor has no mouse and keyboard.")
}
