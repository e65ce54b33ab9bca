//go:build !linux && !windows && !darwin

package display

import (
	"context"
	"errors"
)

func open(context.Context, Options) (*parts, error) {
	return nil, errors.New("Local PC Executor can't see the screen of this kind of computer.")
}
