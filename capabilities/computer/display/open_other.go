//go:build !linux && !windows && !darwin

package display

import "context"

func open(context.Context, Options) (*parts, error) {
	return nil, lacks("Local PC Executor can't see the screen of this kind of computer.")
}
