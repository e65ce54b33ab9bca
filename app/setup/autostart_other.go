//go:build !linux && !windows && !darwin

package setup

import "errors"

const notHere = "On this system the program can't be made to start by itself yet. Start it the way that this system starts programs."

// State tells whether the system starts this program, and why it can't be made
// to; "" when it can.
func (a Autostart) State() (on bool, problem string) { return false, notHere }

// Set has the system start this program from the next log-in on, or not. The
// error is one plain sentence.
func (a Autostart) Set(on bool) error {
	if on {
		return errors.New(notHere)
	}
	return nil
}

func reload() {}
