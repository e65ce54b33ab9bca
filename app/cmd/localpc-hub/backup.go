package main

import (
	"context"
	"errors"
	"fmt"

	"localpc/tunnel/hub/store"
)

func (c *cli) backup(ctx context.Context) error {
	if !store.Exists(c.data) {
		return c.noData()
	}
	s, err := store.OpenAsIs(ctx, c.data)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Backup(ctx, c.args[1]), s.Close()); err != nil {
		return err
	}
	fmt.Fprintf(c.errs, "Everything is in %s. Keep it as you keep passwords: with it, sandboxes that are open now can be used.\n", c.args[1])
	return nil
}

func (c *cli) restore(ctx context.Context) error {
	aside, err := store.Restore(ctx, c.data, c.args[1])
	if errors.Is(err, store.ErrRunning) {
		return errors.New("the hub is running; stop it first, then restore")
	} else if err != nil {
		return err
	}
	if aside != "" {
		fmt.Fprintf(c.errs, "What was there before is in %s.\n", aside)
	}
	fmt.Fprintln(c.errs, "The backup is in place. What was ended after it was made works again: look at user list, key list and machine list. Computers that signed in after it have to be paired again.")
	return nil
}
