package main

import (
	"errors"
	"fmt"
	"os"

	"localpc/app/control"
	"localpc/app/settings"
	"localpc/app/setup"
	"localpc/app/snapshot"
)

// autostart is how the system is made to start this program.
func (c *cli) autostart() (setup.Autostart, error) {
	exe, err := os.Executable()
	if err != nil {
		return setup.Autostart{}, err
	}
	a := setup.Autostart{Book: setup.NewBook(c.paths.Data), Exe: exe, Display: hasDisplay()}
	if usual, err := settings.DefaultData(); err != nil || usual != c.paths.Data {
		a.Data = c.paths.Data
	}
	return a, nil
}

// makeData makes the data directory, where it is nobody else's.
func (c *cli) makeData() error {
	if err := setup.Fit(c.paths); err != nil {
		return err
	}
	return c.paths.Make()
}

// autostartCommand says whether this program starts at log-in, or changes that.
func autostartCommand(c *cli, args []string) error {
	if len(args) == 0 {
		args = []string{"status"}
	}
	if len(args) > 1 || args[0] != "on" && args[0] != "off" && args[0] != "status" {
		return usageError("autostart takes on, off or status")
	}
	a, err := c.autostart()
	if err != nil {
		return err
	}
	if args[0] == "status" {
		on, problem := a.State()
		switch {
		case on:
			fmt.Fprintln(c.out, "On: this program starts when you log in.")
		case problem != "":
			fmt.Fprintln(c.out, "Off.", problem)
		default:
			fmt.Fprintln(c.out, "Off: this program does not start by itself.")
		}
		return nil
	}
	on := args[0] == "on"
	if err := c.makeData(); err != nil {
		return err
	}
	release, err := control.Lock(c.paths.Lock())
	if errors.Is(err, control.ErrRunning) {
		if err := ask(c, snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Autostart: &on}}); err != nil {
			return err
		}
		return autostartCommand(c, nil)
	}
	if err != nil {
		return err
	}
	defer release()
	if err := a.Set(on); err != nil {
		return err
	}
	return autostartCommand(c, nil)
}
