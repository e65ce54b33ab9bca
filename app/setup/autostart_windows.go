package setup

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// runKey is where Windows has what it starts at log-in, for one person.
const runKey = `Software\Microsoft\Windows\CurrentVersion\Run`

// inRegistry begins the path of a value there in the book.
const inRegistry = `HKEY_CURRENT_USER\` + runKey + `\`

// State tells whether the system starts this program, and why it can't be made
// to; "" when it can.
func (a Autostart) State() (on bool, problem string) {
	_, err := runValue(a.name())
	return err == nil, ""
}

// Set has the system start this program from the next log-in on, or not. The
// error is one plain sentence.
func (a Autostart) Set(on bool) error {
	if !on {
		if _, err := a.Book.PutBack(inRegistry + a.name()); err != nil {
			return fmt.Errorf("what starts this program could not be taken away: %w", err)
		}
		if still, _ := a.State(); still {
			return errors.New("what starts this program was changed since it was written, so it was left: take it away in the system's settings")
		}
		return nil
	}
	value := windows.ComposeCommandLine(a.args())
	c := Change{Path: inRegistry + a.name(), What: "starts this program when you log in", Hash: HashOf([]byte(value))}
	if before, err := runValue(a.name()); err == nil {
		c.Was, c.Before = true, before
	}
	err := a.Book.Record(c)
	if err == nil {
		err = setRunValue(a.name(), value)
	}
	if err != nil {
		return fmt.Errorf("this program could not be made to start by itself: %w", err)
	}
	return nil
}

func runValue(name string) (string, error) {
	k, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.QUERY_VALUE)
	if err != nil {
		return "", err
	}
	defer k.Close()
	v, _, err := k.GetStringValue(name)
	return v, err
}

func setRunValue(name, value string) error {
	k, _, err := registry.CreateKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer k.Close()
	return k.SetStringValue(name, value)
}

func reload() {}

// putBackElsewhere undoes a change of the registry.
func putBackElsewhere(c Change) (handled, same bool, err error) {
	name, ok := strings.CutPrefix(c.Path, inRegistry)
	if !ok {
		return false, false, nil
	}
	now, err := runValue(name)
	switch {
	case errors.Is(err, registry.ErrNotExist):
		return true, true, nil
	case err != nil:
		return true, false, err
	case HashOf([]byte(now)) != c.Hash:
		return true, c.Was && now == c.Before, nil
	case c.Was:
		return true, true, setRunValue(name, c.Before)
	}
	k, err := registry.OpenKey(registry.CURRENT_USER, runKey, registry.SET_VALUE)
	if err != nil {
		return true, false, err
	}
	defer k.Close()
	return true, true, k.DeleteValue(name)
}
