//go:build !linux

package tray

import (
	"context"
	"errors"
)

// run has no service to talk to: the tray icon alone calls the person.
func (n *Notifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
			n.complain(errors.New("not on this system"))
		}
	}
}
